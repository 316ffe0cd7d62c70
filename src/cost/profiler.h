// SPDX-License-Identifier: Apache-2.0
// Profiler: which shape to measure next. Pure; the caller runs the shapes and feeds the samples back.
//
// Promises: only reachable shapes (rows ≤ max, padded tokens inside the cap by the lane's time bound,
// predicted bytes ≤ free); corners always; small first; at most 40 shapes and `profile_budget`; stops
// early when the next five shapes were predicted within 1 %.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "cost/cost_model.h"

namespace tonnage::cost {

struct ProfileLimits {
  Bytes free;                                // grant that the worker could get now
  Duration max_batch_time = milliseconds(500);
  Duration profile_budget = seconds(20);
  std::uint32_t max_shapes = 40;
};

struct ProfileStep {
  Shape shape;
  Bytes grant;             // to run it with
  std::uint32_t seed = 0;  // different values for repeats of a shape
  bool is_repeat = false;
};

class Profiler {
 public:
  Profiler(const CostOptions& options, const ProfileLimits& limits);

  // Nothing: profiling is over; then model() is fitted.
  std::optional<ProfileStep> next(Duration elapsed);
  void add(const ProfileStep& step, const Sample& sample);
  void refused(const ProfileStep& step, Bytes needed);  // over grant: needed was at least this
  double progress() const;                              // 0 … 1
  CostModel take_model();

 private:
  CostOptions options_;
  ProfileLimits limits_;
  CostModel model_;
  std::vector<ProfileStep> todo_;
  std::size_t done_ = 0;
  std::size_t good_in_a_row_ = 0;
};

}  // namespace tonnage::cost
