// SPDX-License-Identifier: Apache-2.0
// What the planner sees of a lane: a snapshot, oldest rows first. The pipeline fills it.
#pragma once

#include <cstdint>
#include <span>

#include "base/time.h"

namespace tonnage::planner {

struct PlannerRow {
  std::uint32_t length = 0;  // the row's own length; 0 where the model has no free dim
  std::uint32_t group = 0;   // only rows of one group meet (ModelSpec::group_of)
  std::uint32_t units = 1;   // rows that must stay together
  TimePoint enqueued{};
  TimePoint deadline = kNever;
};

struct LaneView {
  std::span<const PlannerRow> rows;  // the oldest of the lane, at most the window, oldest first
  bool is_long = false;
};

}  // namespace tonnage::planner
