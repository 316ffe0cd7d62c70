// SPDX-License-Identifier: Apache-2.0
// The loop in which lane, planner, batch and worker meet.
#include <algorithm>
#include <utility>

#include "batch/gather.h"
#include "memory/grant_queue.h"
#include "pipeline/pipeline.h"

namespace tonnage::pipeline {
namespace {

constexpr Duration kRetryMemoryAfter = milliseconds(20);

}  // namespace

// Once per turn of the loop, so that all requests that arrived together are planned together.
void Pipeline::schedule_drive() {
  if (std::exchange(drive_scheduled_, true)) return;
  host_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    drive_scheduled_ = false;
    drive();
  });
}

void Pipeline::drive() {
  const TimePoint now = host_.loop.now();
  wake_at_ = kNever;
  someone_waits_for_memory_ = false;
  for (;;) {
    candidates_.clear();
    contenders_.clear();
    for (auto& [name, model] : models_) collect(*model, now);
    if (someone_waits_for_memory_) protect_waiting_lanes(now);
    const std::optional<std::size_t> chosen = arbiter_.choose(contenders_, free_tokens());
    if (!chosen) break;
    if (!dispatch(candidates_[*chosen])) {
      someone_waits_for_memory_ = true;
      break;
    }
  }
  if (someone_waits_for_memory_) {
    wake_at_ = std::min(wake_at_, now + kRetryMemoryAfter);
    make_room();
  }
  arm_wake(now);
}

void Pipeline::arm_wake(TimePoint now) {
  wake_.reset();
  if (wake_at_ == kNever) return;
  wake_ = host_.loop.call_at(std::max(wake_at_, now), [this] { schedule_drive(); });
}

void Pipeline::collect(ServedModel& model, TimePoint now) {
  if (model.phase != ModelPhase::kReady || model.idle_worker() == nullptr) return;
  const std::size_t before = candidates_.size();
  if (!model.retries.empty()) collect_retry(model, now);
  if (candidates_.size() > before) return;  // retries first: their rows waited longest
  for (LaneSlot& slot : model.lanes) {
    if (slot.lane.rows() > 0) collect_lane(model, slot, now);
  }
}

void Pipeline::collect_retry(ServedModel& model, TimePoint now) {
  Group& group = model.retries.front();
  planner::Plan plan;
  plan.kind = planner::Plan::Kind::kRun;
  std::uint32_t longest = 0;
  for (const lane::QueuedRow& row : group.rows) {
    plan.units += row.units;
    longest = std::max(longest, row.length);
  }
  plan.length = model.spec->padded(longest);
  plan.grant = model.cost->grant({plan.units, plan.length});
  plan.time = model.cost->predict_time({plan.units, plan.length});
  plan.must_start_by = now;
  if (plan.grant <= model.largest_grant()) return offer({&model, nullptr, plan}, model.lanes[0].number);
  if (plan.grant <= largest_possible_grant(model)) {
    someone_waits_for_memory_ = true;
    return;
  }
  // It cannot be run as it is whatever is given back.
  Group too_large = std::move(group);
  model.retries.pop_front();
  carry_out(model, recover(std::move(too_large), supervisor::RunFailure::kOverGrant, true),
            "predicted " + format_bytes(plan.grant));
  schedule_drive();
}

void Pipeline::collect_lane(ServedModel& model, LaneSlot& slot, TimePoint now) {
  planner::Plan plan = model.plan(slot, now);
  while (!plan.drops.empty()) {
    std::vector<request::RequestId> dropped;
    const auto window = slot.lane.window(model.spec->batching.window);
    for (const std::uint16_t index : plan.drops) dropped.push_back(window[index].request);
    for (const request::RequestId id : dropped) {
      open_.fail(id, {Code::kDeadlineExceeded, "deadline", "it could not be finished within its deadline"});
    }
    if (slot.lane.rows() == 0) return;
    plan = model.plan(slot, now);
  }
  switch (plan.kind) {
    case planner::Plan::Kind::kRun:
      slot.waits_since = kNever;
      return offer({&model, &slot, plan}, slot.number);
    case planner::Plan::Kind::kWake: wake_at_ = std::min(wake_at_, plan.wake_at); break;
    case planner::Plan::Kind::kIdle: break;
  }
  if (plan.waits_for_memory) {
    someone_waits_for_memory_ = true;
    slot.waits_since = std::min(slot.waits_since, now);
  } else {
    slot.waits_since = kNever;
  }
}

void Pipeline::offer(Candidate candidate, std::uint32_t lane_number) {
  planner::Contender contender;
  contender.lane = lane_number;
  contender.time = candidate.plan.time;
  contender.must_start_by = candidate.plan.must_start_by;
  contender.tokens =
      std::min(candidate.model->idle_worker()->worker->options().threads, options_.compute_tokens);
  candidates_.push_back(candidate);
  contenders_.push_back(contender);
}

// A lane whose smallest batch does not fit may be passed while it is young; when it is old, nothing
// that would make a lease grow begins before it (memory/grant_queue.h).
void Pipeline::protect_waiting_lanes(TimePoint now) {
  std::vector<memory::WaitingGrant> waiting;
  for (auto& [name, model] : models_) {
    for (LaneSlot& slot : model->lanes) {
      WorkerSlot* worker = model->idle_worker();
      if (slot.waits_since == kNever || slot.lane.rows() == 0 || worker == nullptr) continue;
      const lane::QueuedRow& oldest = slot.lane.window(1).front();
      const cost::Shape shape{oldest.units, model->spec->padded(oldest.length)};
      waiting.push_back({0, worker->worker->growth_for(model->cost->grant(shape)), slot.waits_since,
                         model->cost->predict_time(shape)});
    }
  }
  std::ranges::sort(waiting, {}, &memory::WaitingGrant::waiting_since);
  const std::size_t lanes = waiting.size();
  for (const Candidate& candidate : candidates_) {
    const Bytes growth = candidate.model->idle_worker()->worker->growth_for(candidate.plan.grant);
    waiting.push_back({0, growth, now, candidate.plan.time});
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i].ticket = i;
  const memory::GrantDecision decision = memory::decide_grants(waiting, host_.budget.root().available(), now);
  wake_at_ = std::min(wake_at_, decision.next_look);
  std::vector<Candidate> candidates;
  std::vector<planner::Contender> contenders;
  for (const std::uint64_t ticket : decision.begin) {
    if (ticket < lanes) continue;  // it fits again: the next plan finds it
    candidates.push_back(candidates_[ticket - lanes]);
    contenders.push_back(contenders_[ticket - lanes]);
  }
  candidates_ = std::move(candidates);
  contenders_ = std::move(contenders);
}

bool Pipeline::dispatch(const Candidate& candidate) {
  ServedModel& model = *candidate.model;
  WorkerSlot& slot = *model.idle_worker();
  Group group;
  if (candidate.lane == nullptr) {
    group = std::move(model.retries.front());
    model.retries.pop_front();
  } else {
    group.rows = candidate.lane->lane.take(candidate.plan.batch);
    if (model.metrics) {
      const TimePoint now = host_.loop.now();
      for (const lane::QueuedRow& row : group.rows) {
        model.metrics->left_lane(candidate.lane->is_long, now - row.enqueued);
      }
    }
  }
  return run_group(model, slot, std::move(group), candidate.plan);
}

bool Pipeline::run_group(ServedModel& model, WorkerSlot& slot, Group group, const planner::Plan& plan) {
  std::vector<batch::RowRef> rows;
  rows.reserve(plan.units);
  for (const lane::QueuedRow& row : group.rows) {
    const request::Request* request = open_.find(row.request);
    TONNAGE_CHECK(request != nullptr, "a queued row has no request");
    for (std::uint32_t i = 0; i < row.units; ++i) rows.push_back({request, row.row + i});
  }
  auto inputs = batch::gather(*model.spec, rows, plan.length, slot.worker->input_slot(0));
  if (!inputs.is_ok()) {
    TONNAGE_BUG(inputs.status().to_string());
    for (const lane::QueuedRow& row : group.rows) open_.fail(row.request, inputs.status());
    return true;
  }
  InFlight batch;
  batch.group = std::move(group);
  batch.shape = {plan.units, plan.length};
  batch.grant = plan.grant;
  batch.predicted = plan.time;
  batch.started = host_.loop.now();
  supervisor::RunCommand command;
  command.rows = plan.units;
  command.length = plan.length;
  command.grant = plan.grant;
  command.watchdog = model.watchdog(plan.time);
  command.inputs = std::move(inputs).value();
  slot.in_flight = std::move(batch);
  const Status started = slot.worker->run(
      std::move(command),
      [this, &model, &slot](supervisor::RunOutcome outcome) { finished(model, slot, std::move(outcome)); });
  if (started.is_ok()) {
    arbiter_.charge(model.lane_for(plan.length).number, plan.time);
    return true;
  }
  // The ledger said yes a moment ago; whoever took the room since will give it back.
  model.retries.push_front(std::move(slot.in_flight->group));
  slot.in_flight.reset();
  return false;
}

}  // namespace tonnage::pipeline
