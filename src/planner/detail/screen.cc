// SPDX-License-Identifier: Apache-2.0
#include "planner/detail/screen.h"

#include <algorithm>

namespace tonnage::planner {
namespace {

std::int64_t clipped(Duration time) { return std::min(time.count(), kFar); }

// Above the last edge the rows are padded to the next multiple of it.
std::uint32_t bucket_of(std::uint32_t length, std::span<const std::uint32_t> edges) {
  const auto edge = std::lower_bound(edges.begin(), edges.end(), length);
  if (edge != edges.end()) return *edge;
  const std::uint64_t last = edges.back();
  return static_cast<std::uint32_t>((length + last - 1) / last * last);
}

void place(std::uint32_t length, const PlanLimits& limits, Row& row) {
  const cost::CostTable& cost = *limits.cost;
  if (limits.meet == model::MeetRule::kGroup || limits.lengths_are_padded) {
    row.key = row.padded = length;
    row.column = cost.column_of(length);
  } else if (limits.policy == model::Policy::kBuckets && !limits.edges.empty() && length > 0) {
    const std::uint32_t longest = cost.length_of(cost.columns() - 1);
    row.key = row.padded = std::min(bucket_of(length, limits.edges), longest);
    row.column = cost.column_of(row.padded);
  } else {
    row.column = cost.column_of(length);
    row.key = row.padded = cost.length_of(row.column);
  }
}

bool only_equals_meet(const PlanLimits& limits) {
  return limits.meet == model::MeetRule::kGroup || limits.policy == model::Policy::kBuckets;
}

// One stable pass of a radix sort over eight bits of the key.
template <std::uint32_t Row::*Key>
void radix_pass(const Row* from, Row* to, std::size_t count, unsigned shift) {
  std::array<std::uint16_t, 257> start{};
  for (std::size_t i = 0; i < count; ++i) ++start[((from[i].*Key >> shift) & 0xffU) + 1];
  for (std::size_t bin = 1; bin < start.size(); ++bin) {
    start[bin] = static_cast<std::uint16_t>(start[bin] + start[bin - 1]);
  }
  for (std::size_t i = 0; i < count; ++i) to[start[(from[i].*Key >> shift) & 0xffU]++] = from[i];
}

// Sorts by one member, stable; bytes of it that do not differ cost nothing.
template <std::uint32_t Row::*Key>
void sort_by(PlanScratch::State& state) {
  std::uint32_t differing = 0;
  for (std::size_t i = 1; i < state.count; ++i) differing |= state.rows[i].*Key ^ state.rows[0].*Key;
  bool in_spare = false;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    if (((differing >> shift) & 0xffU) == 0) continue;
    const auto& from = in_spare ? state.spare : state.rows;
    radix_pass<Key>(from.data(), (in_spare ? state.rows : state.spare).data(), state.count, shift);
    in_spare = !in_spare;
  }
  if (in_spare) std::copy_n(state.spare.begin(), state.count, state.rows.begin());
}

}  // namespace

void screen(const LaneView& lane, const PlanLimits& limits, TimePoint now, PlanScratch::State& state) {
  const cost::CostTable& cost = *limits.cost;
  state.count = 0;
  state.dropped = 0;
  state.some_wait = false;
  state.until_hopeless = kFar;
  const std::size_t shown = std::min(lane.rows.size(), kMaxWindow);
  for (std::size_t i = 0; i < shown; ++i) {
    const PlannerRow& seen = lane.rows[i];
    Row& row = state.rows[state.count];
    row.units = std::max(seen.units, 1U);
    row.group = seen.group;
    row.index = static_cast<std::uint16_t>(i);
    row.left = seen.deadline == kNever ? kFar : clipped(seen.deadline - now);
    row.age = (now - seen.enqueued).count();
    place(seen.length, limits, row);
    // More units than the table knows can never run: the row must not wait for ever.
    const bool can_run = row.units <= cost.max_rows();
    row.alone = can_run ? clipped(cost.time(row.units, row.column)) : kFar;
    const std::int64_t slack = row.left - drifted(row.alone, limits.drift);
    if (!can_run || slack < 0) {
      state.drops[state.dropped++] = row.index;
    } else if (cost.grant(row.units, row.column) > limits.free) {
      state.some_wait = true;
      if (row.left != kFar) state.until_hopeless = std::min(state.until_hopeless, slack + 1);
    } else {
      ++state.count;
    }
  }
}

void sort_rows(const PlanLimits& limits, PlanScratch::State& state) {
  sort_by<&Row::key>(state);
  sort_by<&Row::group>(state);
  const bool equals = only_equals_meet(limits);
  std::uint16_t segment = 0;
  for (std::size_t i = 0; i < state.count; ++i) {
    if (i > 0 && (state.rows[i].group != state.rows[i - 1].group ||
                  (equals && state.rows[i].key != state.rows[i - 1].key)))
      segment = static_cast<std::uint16_t>(i);
    state.rows[i].segment = segment;
  }
}

}  // namespace tonnage::planner
