// SPDX-License-Identifier: Apache-2.0
#include "pipeline/served_model.h"

#include <algorithm>
#include <utility>

namespace tonnage::pipeline {
namespace {

using supervisor::WorkerState;

// Batches of a model before its watchdog trusts the prediction alone (definitions of outcomes).
constexpr std::uint64_t kSettledBatches = 8;

lane::LaneLimits lane_limits(const model::BatchingOptions& batching) {
  return {batching.max_queue_rows, batching.max_queue};
}

}  // namespace

ServedModel::ServedModel(model::ModelSpec loaded_spec)
    : spec(std::make_shared<const model::ModelSpec>(std::move(loaded_spec))),
      ladder(spec->batching.max_rows) {
  const model::BatchingOptions& batching = spec->batching;
  lanes.emplace_back(lane_limits(batching));
  // Policy fifo takes rows as they come, long and short together: that is what it is compared for.
  if (spec->max_length > batching.long_above && batching.policy != model::Policy::kFifo) {
    lanes.emplace_back(lane_limits(batching));
    lanes.back().is_long = true;
  }
}

bool ServedModel::is_ready() const {
  if (phase != ModelPhase::kReady || is_leaving || ladder.is_refusing()) return false;
  return std::ranges::any_of(workers, [](const WorkerSlot& slot) {
    const WorkerState state = slot.worker->state();
    return state == WorkerState::kReady || state == WorkerState::kBusy;
  });
}

bool ServedModel::accepts() const {
  if (phase != ModelPhase::kReady || is_leaving) return false;
  return std::ranges::any_of(workers, [](const WorkerSlot& slot) {
    const WorkerState state = slot.worker->state();
    return state != WorkerState::kBroken && state != WorkerState::kStopped;
  });
}

LaneSlot& ServedModel::lane_for(std::uint32_t length) {
  return lanes.size() > 1 && length > spec->batching.long_above ? lanes[1] : lanes[0];
}

WorkerSlot* ServedModel::idle_worker() {
  const auto found = std::ranges::find_if(workers, [](const WorkerSlot& slot) { return slot.is_free(); });
  return found == workers.end() ? nullptr : &*found;
}

WorkerSlot* ServedModel::idle_worker_for(Bytes grant) {
  WorkerSlot* best = nullptr;
  for (WorkerSlot& slot : workers) {
    if (!slot.is_free() || slot.worker->largest_grant() < grant) continue;
    if (best == nullptr || slot.worker->growth_for(grant) < best->worker->growth_for(grant)) best = &slot;
  }
  return best;
}

std::uint64_t ServedModel::deaths() const {
  std::uint64_t sum = retired_deaths;
  for (const WorkerSlot& slot : workers) sum += slot.worker->deaths();
  return sum;
}

Bytes ServedModel::largest_grant() const {
  Bytes largest;
  for (const WorkerSlot& slot : workers) {
    if (slot.is_free()) largest = std::max(largest, slot.worker->largest_grant());
  }
  return largest;
}

Duration ServedModel::work_ahead() const {
  Duration work{};
  for (const LaneSlot& slot : lanes) work += slot.lane.work();
  for (const Group& group : retries) {
    for (const lane::QueuedRow& row : group.rows) work += row.work;
  }
  return work;
}

Duration ServedModel::residual(TimePoint now) const {
  Duration shortest = Duration::max();
  for (const WorkerSlot& slot : workers) {
    if (slot.is_free()) return Duration{};
    Duration left = cold_start;  // being replaced
    if (slot.in_flight)
      left = std::max(Duration{}, slot.in_flight->predicted - (now - slot.in_flight->started));
    shortest = std::min(shortest, left);
  }
  return shortest == Duration::max() ? Duration{} : shortest;
}

Duration ServedModel::work_of_row(std::uint32_t length) const {
  if (row_work.empty()) return Duration{};
  return row_work[cost->table().column_of(length)];
}

void ServedModel::refresh_row_work() {
  const cost::CostTable& table = cost->table();
  row_work.assign(table.columns(), Duration::max());
  const double drift = cost->drift();
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    for (std::uint32_t rows = 1; rows <= table.max_rows(); ++rows) {
      if (table.time(rows, column) > spec->batching.max_batch_time && rows > 1) break;
      row_work[column] = std::min(row_work[column], table.time(rows, column) / rows);
    }
    row_work[column] = from_seconds(to_seconds(row_work[column]) * drift);
  }
}

std::size_t ServedModel::waiting_rows() const {
  std::size_t rows = 0;
  for (const LaneSlot& slot : lanes) rows += slot.lane.rows();
  for (const Group& group : retries) rows += group.rows.size();
  return rows;
}

planner::Plan ServedModel::plan(LaneSlot& slot, TimePoint now) {
  const model::BatchingOptions& batching = spec->batching;
  const auto window = slot.lane.window(batching.window);
  slot.view.clear();
  for (const lane::QueuedRow& row : window) {
    slot.view.push_back({row.length, row.group, row.units, row.enqueued, row.deadline});
  }
  planner::PlanLimits limits;
  limits.cost = &cost->table();
  limits.policy = batching.policy;
  limits.meet = spec->meet;
  limits.lengths_are_padded = !spec->sizes.empty();
  limits.edges = batching.edges;
  limits.max_rows = ladder.max_rows();
  limits.free = largest_grant();
  limits.max_batch_time = slot.is_long ? batching.max_batch_time_long : batching.max_batch_time;
  limits.max_age = 2 * limits.max_batch_time;
  limits.max_wait = batching.max_wait;
  limits.a_worker_is_idle = true;
  limits.drift = cost->drift();
  return planner::plan_lane({slot.view, slot.is_long}, limits, now, slot.scratch);
}

Duration ServedModel::watchdog(Duration predicted) const {
  const Duration ten = predicted * 10;
  return stats.batches < kSettledBatches ? std::max<Duration>(seconds(60), ten)
                                         : std::max<Duration>(seconds(5), ten);
}

}  // namespace tonnage::pipeline
