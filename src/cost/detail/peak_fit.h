// SPDX-License-Identifier: Apache-2.0
// PeakFit: peak bytes of any shape, from the profiled ones.
//
// Promises:
//  1. A profiled shape is its measured peak. Between profiled shapes the fit never leaves what a
//     monotone cost allows: at least the peak of every smaller shape, at most that of every larger one
//     (the upper side only where the samples themselves are monotone and values do not matter).
//  2. Planes are not bent by what they do not explain: exceptions below them are lines of their own, and what
//     jumps with the length alone is a part of its own (detail/exact_lines.h, detail/length_part.h).
//  3. margin() covers every sample of the half that the fit has not seen.
// Pure. Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost/detail/exact_lines.h"
#include "cost/detail/length_part.h"
#include "cost/detail/planes.h"
#include "cost/gap.h"

namespace tonnage::cost::detail {

struct PeakSample {
  Shape shape;
  std::uint64_t lowest = 0;  // over the repeats with other values
  std::uint64_t highest = 0;
  std::uint32_t runs = 1;
};

class PeakFit {
 public:
  // `samples`: distinct shapes.
  void fit(std::span<const PeakSample> samples, bool value_dependent);
  double value(Shape shape) const;  // ≥ 1
  double margin() const { return margin_; }
  // Where another measurement would tell what happens.
  std::vector<Gap> gaps() const;
  // Where costs were seen to be monotone: what the measured shapes that contain this one took at least, and
  // the least margin; else infinite. A margin that one odd shape made large ends here.
  double ceiling(Shape shape) const;

 private:
  // Takes less than the planes say: the program does something cheaper there.
  bool is_exception(const PeakSample& sample) const;
  bool planes_meet_all() const;
  std::optional<Gap> gap_beside(const PeakSample& exception, bool above) const;
  double clamped(double value, Shape shape, std::span<const PeakSample> known) const;
  double needed_margin(std::span<const PeakSample> known, std::span<const PeakSample> unseen) const;

  Planes planes_;
  std::vector<Line> lines_;                // of what lies below the planes
  std::optional<LengthPart> length_part_;  // instead of both
  std::vector<PeakSample> samples_;
  bool clamp_above_ = false;
  double margin_ = 0;
};

}  // namespace tonnage::cost::detail
