// SPDX-License-Identifier: Apache-2.0
#include "pipeline/served_model.h"

#include <algorithm>
#include <utility>

namespace tonnage::pipeline {
namespace {

using supervisor::WorkerState;

// Batches of a model before its watchdog trusts the prediction alone (definitions of outcomes).
constexpr std::uint64_t kSettledBatches = 8;
constexpr Duration kIdlePatience = seconds(300);
constexpr double kPaceStep = 0.2;  // five batches are most of what is remembered
constexpr double kLeastPace = 0.25;
constexpr double kMostPace = 64;

lane::LaneLimits lane_limits(const model::BatchingOptions& batching) {
  return {batching.max_queue_rows, batching.max_queue};
}

bool takes(const WorkerSlot& slot, bool for_long) {
  return slot.serves == Serves::kAll || (slot.serves == Serves::kLong) == for_long;
}

}  // namespace

ServedModel::ServedModel(model::ModelSpec loaded_spec)
    : spec(std::make_shared<const model::ModelSpec>(std::move(loaded_spec))),
      ladder(spec->batching.max_rows),
      enforce(spec->enforce) {
  const model::BatchingOptions& batching = spec->batching;
  lanes.emplace_back(lane_limits(batching));
  // Policy fifo takes rows as they come, long and short together: that is what it is compared for.
  if (spec->max_length > batching.long_above && batching.policy != model::Policy::kFifo) {
    lanes.emplace_back(lane_limits(batching));
    lanes.back().is_long = true;
  }
}

bool ServedModel::is_ready() const {
  if (phase != ModelPhase::kReady || is_leaving || ladder.is_resting()) return false;
  return std::ranges::any_of(workers, [](const WorkerSlot& slot) {
    const WorkerState state = slot.worker->state();
    return state == WorkerState::kReady || state == WorkerState::kBusy;
  });
}

bool ServedModel::is_coming() const {
  return (phase == ModelPhase::kLoading || phase == ModelPhase::kWarmingUp) && trouble.is_ok();
}

std::string ServedModel::why_not_ready() const {
  if (!trouble.is_ok()) return trouble.detail();
  if (ladder.is_resting()) return resting_status().detail();
  return "the model is loading";
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

WorkerSlot* ServedModel::idle_worker(bool for_long) {
  const auto found = std::ranges::find_if(
      workers, [for_long](const WorkerSlot& slot) { return takes(slot, for_long) && slot.is_free(); });
  return found == workers.end() ? nullptr : &*found;
}

WorkerSlot* ServedModel::idle_worker_for(Bytes grant, bool for_long) {
  WorkerSlot* best = nullptr;
  for (WorkerSlot& slot : workers) {
    if (!takes(slot, for_long) || !slot.is_free() || slot.worker->largest_grant() < grant) continue;
    if (best == nullptr || slot.worker->growth_for(grant) < best->worker->growth_for(grant)) best = &slot;
  }
  return best;
}

std::uint64_t ServedModel::deaths() const {
  std::uint64_t sum = retired_deaths;
  for (const WorkerSlot& slot : workers) sum += slot.worker->deaths();
  return sum;
}

Bytes ServedModel::largest_grant(bool for_long) const {
  Bytes largest;
  for (const WorkerSlot& slot : workers) {
    if (takes(slot, for_long) && slot.is_free()) largest = std::max(largest, slot.worker->largest_grant());
  }
  return largest;
}

Duration ServedModel::work_ahead(bool for_long) const {
  Duration work{};
  for (const LaneSlot& slot : lanes) {
    if (!is_split() || slot.is_long == for_long) work += slot.lane.work();
  }
  for (const Group& group : retries) {
    for (const lane::QueuedRow& row : group.rows) work += row.work;
  }
  return work;
}

Duration ServedModel::waiting_work() const {
  Duration work = work_ahead(false);
  if (is_split()) work += lanes[1].lane.work();
  return work;
}

std::uint32_t ServedModel::workers_for(bool for_long) const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(workers, [for_long](const WorkerSlot& slot) { return takes(slot, for_long); }));
}

double ServedModel::pace(bool for_long) const {
  double sum = 0;
  std::uint32_t count = 0;
  for (const WorkerSlot& slot : workers) {
    if (!takes(slot, for_long)) continue;
    sum += slot.pace;
    ++count;
  }
  return count == 0 ? 1.0 : sum / count;
}

Duration ServedModel::residual(TimePoint now, bool for_long) const {
  Duration shortest = Duration::max();
  for (const WorkerSlot& slot : workers) {
    if (!takes(slot, for_long)) continue;
    if (slot.is_free()) return Duration{};
    Duration left = cold_start;  // being replaced
    if (slot.in_flight) {
      const Duration expected = from_seconds(to_seconds(slot.in_flight->predicted) * drift());
      left = std::max(Duration{}, expected - (now - slot.in_flight->started));
    }
    shortest = std::min(shortest, left);
  }
  return shortest == Duration::max() ? Duration{}
                                     : from_seconds(to_seconds(shortest) / (drift() * pace(for_long)));
}

Duration ServedModel::work_of_row(std::uint32_t length) const {
  if (row_work.empty()) return Duration{};
  return row_work[cost->table().column_of(length)];
}

void ServedModel::refresh_row_work() {
  const cost::CostTable& table = cost->table();
  row_work.assign(table.columns(), Duration::max());
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    for (std::uint32_t rows = 1; rows <= table.max_rows(); ++rows) {
      if (table.time(rows, column) > spec->batching.max_batch_time && rows > 1) break;
      row_work[column] = std::min(row_work[column], table.time(rows, column) / rows);
    }
  }
}

Duration ServedModel::batch_bound(bool is_long) const {
  const Duration bound = is_long ? spec->batching.max_batch_time_long : spec->batching.max_batch_time;
  // Where batches are faster than they were, they get no larger than was tried.
  return from_seconds(to_seconds(bound) / std::max(1.0, cost->drift()));
}

void ServedModel::tighten_lanes() {
  const Duration bound = from_seconds(to_seconds(spec->batching.max_queue) / cost->drift());
  for (LaneSlot& slot : lanes) slot.lane.set_max_work(bound);
}

std::size_t ServedModel::waiting_rows() const {
  std::size_t rows = 0;
  for (const LaneSlot& slot : lanes) rows += slot.lane.rows();
  for (const Group& group : retries) rows += group.rows.size();
  return rows;
}

std::vector<lane::QueuedRow> ServedModel::waiting() {
  std::vector<lane::QueuedRow> rows;
  rows.reserve(waiting_rows());
  const auto add = [&rows](std::span<const lane::QueuedRow> more) {
    rows.insert(rows.end(), more.begin(), more.end());
  };
  for (LaneSlot& slot : lanes) add(slot.lane.window(slot.lane.rows()));
  for (const Group& group : retries) add(group.rows);
  return rows;
}

bool ServedModel::has_work() const {
  return waiting_rows() > 0 ||
         std::ranges::any_of(workers, [](const WorkerSlot& slot) { return slot.in_flight.has_value(); });
}

std::uint32_t ServedModel::tokens(std::uint32_t cores) const {
  std::uint32_t sum = 0;
  for (const WorkerSlot& slot : workers) sum += std::min(slot.tokens, cores);
  return sum;
}

void ServedModel::forget_rows(request::RequestId id) {
  if (waiting_rows() == 0) return;
  for (LaneSlot& slot : lanes) slot.lane.remove(id);
  for (Group& group : retries) {
    std::erase_if(group.rows, [id](const lane::QueuedRow& row) { return row.request == id; });
  }
  std::erase_if(retries, [](const Group& group) { return group.rows.empty(); });
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
  limits.free = largest_grant(slot.is_long);
  limits.max_batch_time = batch_bound(slot.is_long);
  limits.max_age = 2 * (slot.is_long ? batching.max_batch_time_long : batching.max_batch_time);
  limits.max_wait = batching.max_wait;
  limits.a_worker_is_idle = true;
  limits.drift = drift() * pace(slot.is_long);
  return planner::plan_lane({slot.view, slot.is_long}, limits, now, slot.scratch);
}

Duration ServedModel::watchdog(Duration predicted, const WorkerSlot& slot) const {
  const Duration ten = from_seconds(to_seconds(predicted) * 10 * std::max(1.0, drift()));
  // What runs on what the others leave may have to wait for long, and is not stuck.
  if (slot.tokens == 0) return std::max<Duration>(kIdlePatience, ten);
  return stats.batches < kSettledBatches ? std::max<Duration>(seconds(60), ten)
                                         : std::max<Duration>(seconds(5), ten);
}

void WorkerSlot::learn_pace(Duration predicted, Duration took) {
  if (serves != Serves::kLong || predicted <= Duration{}) return;
  pace = std::clamp(pace * (1 + kPaceStep * (to_seconds(took) / to_seconds(predicted) - 1)), kLeastPace,
                    kMostPace);
}

}  // namespace tonnage::pipeline
