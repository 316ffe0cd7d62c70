// SPDX-License-Identifier: Apache-2.0
// The dynamic program over the sorted rows: the best group to run first.
// Source: batch scheduling of TurboTransformers (arXiv 2010.05680), with the group that goes first and
// the deadlines added to the objective.
#pragma once

#include "planner/detail/state.h"

namespace tonnage::planner {

enum class Cap : std::uint8_t {
  kKnee,     // fewest units of a column that reach 97 % of its best rate
  kLargest,  // whatever max_rows, `free` and max_batch_time allow
};

inline constexpr std::uint32_t kAnyLate = ~std::uint32_t{0};

// `state.rows` is sorted and not empty. A group of no units: whatever goes first, more than `most_late`
// rows miss their deadlines.
Choice best_group(const PlanLimits& limits, Cap cap, std::uint32_t most_late, PlanScratch::State& state);

}  // namespace tonnage::planner
