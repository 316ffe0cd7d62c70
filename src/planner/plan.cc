// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.h"

#include <algorithm>
#include <cmath>

#include "planner/detail/partition.h"
#include "planner/detail/screen.h"

namespace tonnage::planner {
namespace {

using State = PlanScratch::State;

constexpr Duration kShortestRest = milliseconds(1);

// What is to run, whichever policy chose it.
struct Batch {
  std::uint16_t rows = 0;
  std::uint32_t units = 0;
  std::uint32_t cap = 0;  // units at which waiting gains nothing more
  std::uint32_t column = 0;
  std::uint32_t padded = 0;
  std::int64_t left = kFar;
  std::int64_t age = 0;
};

// Policy fifo: the oldest rows, padded to the longest; only `free` and max_rows hold it back.
Batch take_oldest(const PlanLimits& limits, State& state) {
  const cost::CostTable& cost = *limits.cost;
  Batch batch;
  batch.cap = std::min({limits.max_rows, cost.max_rows(), static_cast<std::uint32_t>(kMaxBatchRows)});
  for (std::size_t i = 0; i < state.count; ++i) {
    const Row& row = state.rows[i];
    if (row.group != state.rows[0].group) continue;
    if (limits.meet == model::MeetRule::kGroup && row.key != state.rows[0].key) continue;
    const std::uint32_t units = batch.units + row.units;
    const std::uint32_t column = std::max(batch.column, row.column);
    const bool fits = units <= batch.cap && cost.grant(units, column) <= limits.free;
    if (batch.rows > 0 && !fits) break;
    state.batch[batch.rows++] = row.index;
    batch.units = units;
    batch.column = column;
    batch.padded = std::max(batch.padded, row.padded);
    batch.left = std::min(batch.left, row.left);
    batch.age = std::max(batch.age, row.age);
  }
  return batch;
}

// Policies dp and buckets. Groups grow beyond the knee only when a backlog is past its deadlines.
Batch take_best(const PlanLimits& limits, State& state) {
  sort_rows(limits, state);
  // Whether nobody need be late is soon known: a group is given up at its first late row.
  Choice choice;
  if (state.dropped == 0) choice = best_group(limits, Cap::kKnee, 0, state);
  if (choice.group.units == 0) choice = best_group(limits, Cap::kLargest, kAnyLate, state);
  const Group& group = choice.group;
  const Row& last = state.rows[group.end - 1U];
  Batch batch{.units = group.units,
              .cap = state.caps[group.end - 1U],
              .column = last.column,
              .padded = last.padded,
              .left = group.left,
              .age = group.age};
  for (std::size_t i = group.begin; i < group.end; ++i) state.batch[batch.rows++] = state.rows[i].index;
  return batch;
}

// When the batch is to start: later than now only where waiting may fill it and nothing gets late.
TimePoint start_time(const Batch& batch, const Plan& plan, const PlanLimits& limits, TimePoint now) {
  if (plan.must_start_by <= now) return now;
  if (!limits.a_worker_is_idle)
    return std::min(plan.must_start_by, now + std::max(limits.max_age, kShortestRest));
  if (batch.units >= batch.cap) return now;
  const Duration rest = limits.max_wait - Duration(batch.age);
  return rest > Duration(0) ? std::min(plan.must_start_by, now + rest) : now;
}

void fill(const Batch& batch, const PlanLimits& limits, TimePoint now, const State& state, Plan& plan) {
  const Duration time = limits.cost->time(batch.units, batch.column);
  if (batch.left != kFar) {
    plan.must_start_by = now + Duration(batch.left - drifted(time.count(), limits.drift));
  }
  const TimePoint start = start_time(batch, plan, limits, now);
  if (start > now) {
    plan.kind = Plan::Kind::kWake;
    plan.wake_at = start;
    return;
  }
  plan.kind = Plan::Kind::kRun;
  plan.batch = std::span(state.batch).first(batch.rows);
  plan.units = batch.units;
  plan.length = batch.padded;
  plan.grant = limits.cost->grant(batch.units, batch.column);
  plan.time = time;
}

}  // namespace

PlanScratch::PlanScratch() : state_(std::make_unique<State>()) {}
PlanScratch::~PlanScratch() = default;

Plan plan_lane(const LaneView& lane, const PlanLimits& given, TimePoint now, PlanScratch& scratch) {
  State& state = scratch.state();
  PlanLimits limits = given;
  if (!(limits.drift > 0) || !std::isfinite(limits.drift)) limits.drift = 1;
  screen(lane, limits, now, state);

  Plan plan;
  plan.drops = std::span(state.drops).first(state.dropped);
  plan.some_wait = state.some_wait;
  if (state.count > 0) {
    const bool fifo = limits.policy == model::Policy::kFifo;
    fill(fifo ? take_oldest(limits, state) : take_best(limits, state), limits, now, state, plan);
  } else if (state.some_wait) {
    plan.kind = Plan::Kind::kWake;
    plan.waits_for_memory = true;
    plan.wake_at = now + std::min(Duration(state.until_hopeless), std::max(limits.max_age, kShortestRest));
  }
  return plan;
}

}  // namespace tonnage::planner
