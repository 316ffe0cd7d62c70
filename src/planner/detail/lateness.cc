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

Lateness::Lateness(const PlanLimits& limits, std::int64_t reach, PlanScratch::State& state)
    : state_(state), cell_(reach / static_cast<std::int64_t>(kCells) + 1) {
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
    urgent.latest = urgent.left - drifted(row.alone, limits.drift);
    urgent.pace = pace_of(row, state.caps[urgent.row], limits);
    if (at > urgent.latest) watched_ = i + 1;
    at += urgent.pace;
  }
  if (watched_ == 0) return;
  in_time_.fill(kUnknown);
  std::fill_n(state.watched_before.begin(), state.count + 1, std::uint16_t{0});
  for (std::size_t i = 0; i < watched_; ++i) state.watched_before[state.urgent[i].row + std::size_t{1}] = 1;
  for (std::size_t i = 1; i <= state.count; ++i) {
    state.watched_before[i] =
        static_cast<std::uint16_t>(state.watched_before[i] + state.watched_before[i - 1]);
  }
  const auto watched = static_cast<std::ptrdiff_t>(watched_);
  std::copy_n(begin, watched, state.by_end.begin());
  std::sort(state.by_end.begin(), state.by_end.begin() + watched,
            [](const Urgent& a, const Urgent& b) { return a.latest + a.pace < b.latest + b.pace; });
}

// Moore and Hodgson (1968): in the order of their ends, and whenever one is late the longest so far is
// given up. Nobody brings more rows in time.
std::uint32_t Lateness::most_in_time(std::int64_t start) {
  const auto heap = state_.paces.begin();
  auto end = heap;
  std::int64_t at = start;
  for (std::size_t i = 0; i < watched_; ++i) {
    const Urgent& row = state_.by_end[i];
    *end++ = row.pace;
    std::push_heap(heap, end);
    at += row.pace;
    if (at <= row.latest + row.pace) continue;
    std::pop_heap(heap, end);
    at -= *--end;
  }
  return static_cast<std::uint32_t>(end - heap);
}

}  // namespace tonnage::planner
