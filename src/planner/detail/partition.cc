// SPDX-License-Identifier: Apache-2.0
#include "planner/detail/partition.h"

#include <algorithm>
#include <limits>

#include "planner/detail/lateness.h"

namespace tonnage::planner {
namespace {

using State = PlanScratch::State;

constexpr double kKneeShare = 0.97;
constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max();

// Largest group of a column; 0 where only a single row beyond the bounds can go.
std::uint16_t cap_of(std::uint32_t column, const PlanLimits& limits, Cap kind) {
  const cost::CostTable& cost = *limits.cost;
  const std::uint32_t most =
      std::min({limits.max_rows, cost.max_rows(), static_cast<std::uint32_t>(kMaxBatchRows)});
  const auto time_of = [&](std::uint32_t units) {
    return static_cast<double>(std::max<std::int64_t>(cost.time(units, column).count(), 1));
  };
  // Rates are compared crosswise: a division per cell would cost as much as the search behind it.
  double best_units = 0;
  double best_time = 1;
  std::uint32_t fit = 0;
  while (fit < most && cost.grant(fit + 1, column) <= limits.free &&
         cost.time(fit + 1, column) <= limits.max_batch_time) {
    const double time = time_of(++fit);
    if (fit * best_time <= best_units * time) continue;
    best_units = fit;
    best_time = time;
  }
  if (kind == Cap::kLargest || fit == 0) return static_cast<std::uint16_t>(fit);
  std::uint32_t knee = 1;
  while (knee * best_time < kKneeShare * best_units * time_of(knee)) ++knee;
  return static_cast<std::uint16_t>(knee);
}

void find_caps(const PlanLimits& limits, Cap kind, State& state) {
  for (std::size_t i = 0; i < state.count; ++i) {
    const bool same = i > 0 && state.rows[i].column == state.rows[i - 1].column;
    state.caps[i] = same ? state.caps[i - 1] : cap_of(state.rows[i].column, limits, kind);
  }
}

// Copies the times of the column of row `last`, so that the inner loops read one small array.
void load_times(const PlanLimits& limits, std::size_t last, State& state) {
  for (std::uint32_t units = 1; units <= state.caps[last]; ++units) {
    state.times[units - 1] = limits.cost->time(units, state.rows[last].column).count();
  }
}

bool same_column(const State& state, std::size_t a, std::size_t b) {
  return state.rows[a].column == state.rows[b].column;
}

// before[i]: least sum of times that runs the rows [0, i).
void run_forward(const PlanLimits& limits, State& state) {
  state.before[0] = 0;
  for (std::size_t end = 1; end <= state.count; ++end) {
    const std::size_t last = end - 1;
    if (last == 0 || !same_column(state, last, last - 1)) load_times(limits, last, state);
    const Row* const rows = state.rows.data();
    const std::int64_t* const times = state.times.data();
    const std::int64_t* const before = state.before.data();
    std::int64_t least = before[last] + rows[last].alone;
    std::uint32_t units = rows[last].units;
    for (std::size_t begin = last; begin-- > rows[last].segment;) {
      units += rows[begin].units;
      if (units > state.caps[last]) break;
      least = std::min(least, before[begin] + times[units - 1]);
    }
    state.before[end] = least;
  }
}

// The bounds inside which a deadline matters to this plan; drifted.
struct Pressure {
  std::int64_t horizon = 0;  // must start now: cannot wait for one more batch of the lane's bound
  std::int64_t reach = 0;    // longest time that any group takes
  bool is_near = false;      // some group may have to start now
};

Pressure pressure_of(const PlanLimits& limits, const State& state) {
  const std::int64_t bound = std::min(limits.max_batch_time.count(), kFar);
  std::int64_t longest = bound;
  std::int64_t least_left = kFar;
  for (std::size_t i = 0; i < state.count; ++i) {
    longest = std::max(longest, state.rows[i].alone);
    least_left = std::min(least_left, state.rows[i].left);
  }
  Pressure pressure{.horizon = drifted(bound, limits.drift), .reach = drifted(longest, limits.drift)};
  pressure.is_near = least_left != kFar && least_left <= pressure.horizon + pressure.reach;
  return pressure;
}

class Search {
 public:
  Search(const PlanLimits& limits, const Pressure& pressure, std::uint32_t most_late, State& state)
      : limits_(limits),
        state_(state),
        lateness_(limits, pressure.reach, state),
        horizon_(pressure.horizon),
        is_pressed_(pressure.is_near || lateness_.is_possible()),
        best_{.group = {}, .score = {.late = most_late, .sum = kUnreached}} {}

  // Walks back over the ends; after[end] is final when end is reached. Without pressure every plan is
  // as good as its sum, so only groups on a cheapest path are looked at.
  Choice run() {
    std::fill_n(state_.after.begin(), state_.count, kUnreached);
    state_.after[state_.count] = 0;
    std::size_t loaded = state_.count;
    for (std::size_t end = state_.count; end > 0; --end) {
      if (!is_pressed_ && state_.after[end] == kUnreached) continue;
      if (loaded == state_.count || !same_column(state_, loaded, end - 1))
        load_times(limits_, end - 1, state_);
      loaded = end - 1;
      visit_groups(end);
    }
    return best_;
  }

 private:
  void visit_groups(std::size_t end) {
    // Plain pointers: the checked operator[] of every array would triple this loop.
    const Row* const rows = state_.rows.data();
    const std::int64_t* const times = state_.times.data();
    const std::int64_t* const before = state_.before.data();
    std::int64_t* const after = state_.after.data();
    const std::int64_t cheapest = before[state_.count];
    const std::int64_t rest = after[end];
    const std::uint32_t cap = state_.caps[end - 1];
    const std::size_t segment = rows[end - 1].segment;
    Group group{.end = static_cast<std::uint16_t>(end), .oldest = 0xffff};
    for (std::size_t begin = end; begin-- > segment;) {
      const Row& row = rows[begin];
      group.units += row.units;
      if (begin + 1 < end && group.units > cap) break;
      group.begin = static_cast<std::uint16_t>(begin);
      group.oldest = std::min(group.oldest, row.index);
      group.left = std::min(group.left, row.left);
      group.age = std::max(group.age, row.age);
      group.time = begin + 1 == end ? row.alone : times[group.units - 1];
      const std::int64_t sum = before[begin] + group.time + rest;
      if (!is_pressed_ && sum != cheapest) continue;
      after[begin] = std::min(after[begin], group.time + rest);
      consider(group, sum);
    }
  }

  void consider(const Group& group, std::int64_t sum) {
    const std::int64_t time = drifted(group.time, limits_.drift);
    const std::uint32_t late = lateness_.count(group.begin, group.end, time, best_.score.late);
    if (late > best_.score.late) return;
    Score score{.late = late, .sum = sum, .oldest = group.oldest};
    const std::int64_t slack = group.left - time;
    if (group.left != kFar && slack <= horizon_) {
      score.urgency = Class::kMustStartNow;
      score.measure = slack;
    } else if (group.age > limits_.max_age.count()) {
      score.urgency = Class::kOverAge;
    } else {
      score.measure = group.time * 512 / group.units;
    }
    score.missing_units = ~group.units;
    if (score < best_.score) best_ = {.group = group, .score = score};
  }

  const PlanLimits& limits_;
  State& state_;
  Lateness lateness_;
  std::int64_t horizon_;
  bool is_pressed_;
  Choice best_;  // at first worse than any that is to be found
};

}  // namespace

Choice best_group(const PlanLimits& limits, Cap cap, std::uint32_t most_late, PlanScratch::State& state) {
  find_caps(limits, cap, state);
  run_forward(limits, state);
  return Search(limits, pressure_of(limits, state), most_late, state).run();
}

}  // namespace tonnage::planner
