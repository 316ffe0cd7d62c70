// SPDX-License-Identifier: Apache-2.0
#include "planner/detail/lateness.h"

#include <algorithm>

namespace tonnage::planner {
namespace {

// A row's share of a full batch of its length, drifted.
std::int64_t pace_of(const Row& row, std::uint32_t cap, const PlanLimits& limits) {
  if (row.units >= cap) return drifted(row.alone, limits.drift);
  return drifted(limits.cost->time(cap, row.column).count() * row.units / cap, limits.drift);
}

}  // namespace

Lateness::Lateness(const PlanLimits& limits, std::int64_t reach, PlanScratch::State& state) : state_(state) {
  // Behind one group and the other urgent rows, none of which takes longer than `reach`, nobody is late
  // whose deadline is further away than this.
  const std::int64_t safe = reach < kFar / static_cast<std::int64_t>(kMostUrgent + 1)
                                ? reach * static_cast<std::int64_t>(kMostUrgent + 1)
                                : kFar;
  std::size_t found = 0;
  for (std::size_t i = 0; i < state.count; ++i) {
    if (state.rows[i].left >= safe) continue;
    state.urgent[found++] = {.left = state.rows[i].left, .row = static_cast<std::uint16_t>(i)};
  }
  const std::size_t kept = std::min(found, kMostUrgent);
  const auto begin = state.urgent.begin();
  std::partial_sort(
      begin, begin + static_cast<std::ptrdiff_t>(kept), begin + static_cast<std::ptrdiff_t>(found),
      [](const Urgent& a, const Urgent& b) { return a.left != b.left ? a.left < b.left : a.row < b.row; });
  std::int64_t at = reach;
  for (std::size_t i = 0; i < kept; ++i) {
    Urgent& urgent = state.urgent[i];
    const Row& row = state.rows[urgent.row];
    urgent.alone = drifted(row.alone, limits.drift);
    urgent.pace = pace_of(row, state.caps[urgent.row], limits);
    if (at + urgent.alone > urgent.left) watched_ = i + 1;
    at += urgent.pace;
  }
}

}  // namespace tonnage::planner
