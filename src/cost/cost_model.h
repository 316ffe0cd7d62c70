// SPDX-License-Identifier: Apache-2.0
// CostModel: learns peak bytes and time of a model's batches, at load and from every batch.
//
// Promises:
//  1. Memory: non-negative least squares on [1, B, B·P, B·P²], or a maximum of up to three such planes, those
//     that peaks lie on to the byte before any other, on half of the shapes; the margin is calibrated on the
//     other half. A measured shape is exact. grant = fit × (1 + margin), rounded up to 4 KiB, from 8 MiB on
//     to 64 KiB.
//  2. An under-prediction raises its own bucket at once, without a cap; extrapolation to other shapes
//     is bounded; bounds fall by at most 5 % per 100 batches.
//  3. Deterministic and value-dependent models are told apart by repeats with different values.
//  4. Time: smooth monotone fit + shrunken cell residual (n/(n+8)) × a live drift factor; never raw cells.
//     Where times become three times what they were, drift follows to within a quarter in 20 batches.
// Does not: run anything (a Profiler asks a worker through a port) or keep files (ProfileStore does).
// Threads: the loop. Source: Lawson & Hanson 1974 (NNLS); split conformal bounds: Vovk et al. 2005.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
#include "cost/gap.h"
#include "cost/table.h"

namespace tonnage::cost {

struct Sample {
  Shape shape;
  Bytes peak;
  Duration time{};
};

enum class Determinism : std::uint8_t { kUnknown, kDeterministic, kValueDependent };
std::string_view determinism_name(Determinism determinism);

struct CostOptions {
  std::uint32_t max_rows = 64;
  std::uint32_t pad_multiple = 32;
  std::uint32_t max_length = 0;
};

class CostModel {
 public:
  explicit CostModel(const CostOptions& options);
  ~CostModel();
  CostModel(CostModel&&) noexcept;
  CostModel& operator=(CostModel&&) noexcept;

  // Profiling: samples of distinct shapes; `repeat` is the same shape with different values.
  void add_profile(const Sample& sample);
  void add_repeat(const Sample& sample);
  // Fits; afterwards table() is valid. Error: internal/no_profile.
  Status fit();

  // Traffic.
  void observe(const Sample& sample);
  // The allocator refused `shape`, which needed at least `needed`.
  void observe_over_grant(Shape shape, Bytes needed);

  Bytes predict_peak(Shape shape) const;  // the fit, without margin; any integer length
  Bytes grant(Shape shape) const;
  Duration predict_time(Shape shape) const;  // with drift()
  // Where another measurement would tell what happens between two profiled shapes.
  std::vector<Gap> gaps() const;
  Determinism determinism() const;
  double margin() const;
  double drift() const;  // smoothed actual ÷ predicted time

  // Grants and times for the planner, kept current by observe(): a grant that proved too small at
  // once, everything else every few hundred batches. Times are without drift().
  const CostTable& table() const;

  // Text form for the profile store; from_text() refuses other versions. Error: bad_profile.
  std::string to_text() const;
  static Result<CostModel> from_text(std::string_view text, const CostOptions& options);

  struct State;  // known to this room's sources only

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::cost
