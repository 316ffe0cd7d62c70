// SPDX-License-Identifier: Apache-2.0
// Screening: which rows of a window can run now, which are hopeless, which wait for memory; sorted.
#pragma once

#include "planner/detail/state.h"

namespace tonnage::planner {

// Fills rows (in lane order), drops and what waits. `limits.drift` is positive and finite.
void screen(const LaneView& lane, const PlanLimits& limits, TimePoint now, PlanScratch::State& state);
// Sorts the rows by key, stable, and finds the segments.
void sort_rows(const PlanLimits& limits, PlanScratch::State& state);

}  // namespace tonnage::planner
