// SPDX-License-Identifier: Apache-2.0
// The loop in which lane, planner, batch and worker meet.
#include <algorithm>
#include <utility>

#include "batch/gather.h"
#include "pipeline/pipeline.h"

namespace tonnage::pipeline {
namespace {

constexpr Duration kRetryMemoryAfter = milliseconds(20);
constexpr Duration kProbeRestingAfter = seconds(30);
constexpr Duration kPatience = seconds(1);  // of what is run with all there is, for more of it

std::uint32_t longest_of(const Group& group) {
  return std::ranges::max(group.rows, {}, &lane::QueuedRow::length).length;
}

cost::Shape shape_of(const ServedModel& model, const Group& group) {
  cost::Shape shape{0, model.spec->padded(longest_of(group))};
  for (const lane::QueuedRow& row : group.rows) shape.rows += row.units;
  return shape;
}

// The oldest row of the window that does not fit now.
cost::Shape first_that_waits(const ServedModel& model, LaneSlot& slot) {
  const Bytes free = model.largest_grant(slot.is_long);
  cost::Shape shape;
  for (const lane::QueuedRow& row : slot.lane.window(model.spec->batching.window)) {
    shape = {row.units, model.spec->padded(row.length)};
    if (model.cost->grant(shape) > free) break;
  }
  return shape;
}

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
  rotator_.advance();
  look_after_leaving(now);
  someone_waits_for_memory_ = false;
  for (auto& [name, model] : models_) model->is_skipped = false;
  for (;;) {
    candidates_.clear();
    contenders_.clear();
    for (auto& [name, model] : models_) collect(*model, now);
    share_weights();
    if (someone_waits_for_memory_) protect_waiting(now);
    const std::optional<std::size_t> chosen = arbiter_.choose(contenders_, free_tokens());
    if (!chosen) break;
    if (!dispatch(candidates_[*chosen])) {
      someone_waits_for_memory_ = true;
      candidates_[*chosen].model->is_skipped = true;
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
  if (model.ladder.is_resting()) {
    const TimePoint probe_at = std::max(model.resting_since + kProbeRestingAfter, model.ladder.next_climb());
    if (now < probe_at) {
      wake_at_ = std::min(wake_at_, probe_at);
      return;
    }
    model.ladder.time_to_probe(now);
  }
  if (model.phase != ModelPhase::kReady || model.is_skipped) return;
  if (std::ranges::none_of(model.workers, &WorkerSlot::is_free)) return;
  if (model.enforce == model::Enforce::kObserve) release_observed(model);
  const std::size_t before = candidates_.size();
  if (model.retries.empty()) {
    model.retry_waits_since = kNever;
  } else {
    collect_retry(model, now);
  }
  if (candidates_.size() > before) return;  // retries first: their rows waited longest
  collect_lanes(model, now);
}

// Drops of one lane may take rows of the same request out of another: all lanes are planned again then.
void Pipeline::collect_lanes(ServedModel& model, TimePoint now) {
  while (!plan_lanes(model, now)) {
  }
  for (LaneSlot& slot : model.lanes) {
    if (slot.lane.rows() == 0) {
      slot.waits_since = kNever;
    } else if (model.idle_worker(slot.is_long) != nullptr) {
      offer_lane(model, slot, now);
    }
  }
}

bool Pipeline::plan_lanes(ServedModel& model, TimePoint now) {
  for (LaneSlot& slot : model.lanes) {
    if (slot.lane.rows() == 0 || model.idle_worker(slot.is_long) == nullptr) continue;
    slot.plan = model.plan(slot, now);
    if (slot.plan.drops.empty()) continue;
    std::vector<request::RequestId> dropped;
    const auto window = slot.lane.window(model.spec->batching.window);
    for (const std::uint16_t index : slot.plan.drops) dropped.push_back(window[index].request);
    for (const request::RequestId id : dropped) {
      open_.fail(id, {Code::kDeadlineExceeded, "deadline", "it could not be finished within its deadline"});
    }
    return false;
  }
  return true;
}

void Pipeline::collect_retry(ServedModel& model, TimePoint now) {
  // The first whose class has an idle worker comes to the front.
  const auto next = std::ranges::find_if(model.retries, [&model](const Group& waiting) {
    return model.idle_worker(model.lane_for(longest_of(waiting)).is_long) != nullptr;
  });
  if (next == model.retries.end()) return;
  std::rotate(model.retries.begin(), next, next + 1);
  Group& group = model.retries.front();
  const cost::Shape shape = shape_of(model, group);
  planner::Plan plan;
  plan.kind = planner::Plan::Kind::kRun;
  plan.units = shape.rows;
  plan.length = shape.length;
  plan.grant = model.cost->grant(shape);
  plan.time = from_seconds(to_seconds(model.cost->predict_time(shape)) / model.drift());  // as a lane's plan
  plan.must_start_by = now;
  LaneSlot& lane = model.lane_for(longest_of(group));
  if (plan.grant <= model.largest_grant(lane.is_long)) {
    model.retry_waits_since = kNever;
    return offer({&model, nullptr, plan, nullptr, lane.number, lane.is_long});
  }
  if (plan.grant <= largest_possible_grant(model)) {
    someone_waits_for_memory_ = true;
    model.retry_waits_since = std::min(model.retry_waits_since, now);
    return;
  }
  model.retry_waits_since = kNever;
  if (model.enforce == model::Enforce::kObserve && group.rows.size() == 1) {
    plan.grant = model.largest_grant(lane.is_long);
    const Bytes worth_waiting_for = plan.grant + Bytes(plan.grant.count() / 16) + mib(1);
    if (worth_waiting_for < largest_possible_grant(model) && now - group.rows.front().enqueued < kPatience) {
      someone_waits_for_memory_ = true;  // what others hold and do not need comes back first
      return;
    }
    return offer({&model, nullptr, plan, nullptr, lane.number, lane.is_long, true});
  }
  // It cannot be run as it is whatever is given back.
  Group too_large = std::move(group);
  model.retries.pop_front();
  carry_out(model, recover(std::move(too_large), supervisor::RunFailure::kOverGrant, true),
            "predicted " + format_bytes(plan.grant));
  schedule_drive();
}

void Pipeline::offer_lane(ServedModel& model, LaneSlot& slot, TimePoint now) {
  if (slot.plan.some_wait) {
    look_after_waiting(model, slot, now);
  } else {
    slot.waits_since = kNever;
  }
  if (slot.plan.kind == planner::Plan::Kind::kWake) wake_at_ = std::min(wake_at_, slot.plan.wake_at);
  if (slot.plan.kind == planner::Plan::Kind::kRun)
    offer({&model, &slot, slot.plan, nullptr, slot.number, slot.is_long});
}

// Some row needs more memory than there is now: it is protected, or told that it will never fit (what it
// needs may have been learned after it came in).
void Pipeline::look_after_waiting(ServedModel& model, LaneSlot& slot, TimePoint now) {
  const Bytes most = largest_possible_grant(model);
  if (model.enforce == model::Enforce::kObserve && model.cost->grant(first_that_waits(model, slot)) > most) {
    slot.waits_since = kNever;  // it goes alone when its turn comes, and nobody waits for its sake
    return;
  }
  someone_waits_for_memory_ = true;
  slot.waits_since = std::min(slot.waits_since, now);
  if (slot.plan.kind == planner::Plan::Kind::kRun) return;  // the plan's indices must stay valid
  std::vector<request::RequestId> never;
  for (const lane::QueuedRow& row : slot.lane.window(model.spec->batching.window)) {
    if (model.cost->grant({row.units, model.spec->padded(row.length)}) > most) never.push_back(row.request);
  }
  for (const request::RequestId id : never) {
    open_.fail(id, {Code::kTooLarge, "never_fits",
                    "what this request needs was learned to be more than there can be: at most " +
                        format_bytes(most)});
  }
}

void Pipeline::offer(Candidate candidate) {
  candidate.worker = candidate.model->idle_worker_for(candidate.plan.grant, candidate.is_long);
  if (candidate.worker == nullptr) return;
  planner::Contender contender;
  contender.lane = candidate.number;
  contender.time = candidate.worker->paced(candidate.plan.time);
  contender.must_start_by = candidate.plan.must_start_by;
  contender.tokens = std::min(candidate.worker->tokens, options_.compute_tokens);
  candidates_.push_back(candidate);
  contenders_.push_back(contender);
}

// The weight is the model's, however many of its lanes have a batch.
void Pipeline::share_weights() {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const auto lanes = std::ranges::count(candidates_, candidates_[i].model, &Candidate::model);
    contenders_[i].weight = candidates_[i].model->spec->weight / static_cast<double>(lanes);
  }
}

// What the model waits for memory with: a retry, rows of its lanes.
void Pipeline::collect_waiting(ServedModel& model, std::vector<memory::WaitingGrant>& waiting) {
  const auto add = [&](const cost::Shape& shape, TimePoint since, bool is_long) {
    const WorkerSlot* worker = model.idle_worker(is_long);
    if (worker == nullptr) return;
    waiting.push_back(
        {0, worker->worker->growth_for(model.cost->grant(shape)), since, model.cost->predict_time(shape)});
  };
  if (model.retry_waits_since != kNever && !model.retries.empty()) {
    add(shape_of(model, model.retries.front()), model.retry_waits_since,
        model.lane_for(longest_of(model.retries.front())).is_long);
  }
  for (LaneSlot& slot : model.lanes) {
    if (slot.waits_since == kNever || slot.lane.rows() == 0) continue;
    add(first_that_waits(model, slot), slot.waits_since, slot.is_long);
  }
}

std::vector<const Pipeline::Candidate*> Pipeline::may_begin(memory::Account& ledger, TimePoint now) {
  std::vector<memory::WaitingGrant> waiting;
  for (auto& [name, model] : models_) {
    if (&ledger_of(*model) == &ledger) collect_waiting(*model, waiting);
  }
  std::ranges::sort(waiting, {}, &memory::WaitingGrant::waiting_since);
  const std::size_t those = waiting.size();
  std::vector<const Candidate*> asking;
  for (const Candidate& candidate : candidates_) {
    if (&ledger_of(*candidate.model) != &ledger) continue;
    const Bytes growth = candidate.worker->worker->growth_for(candidate.plan.grant);
    waiting.push_back({0, growth, now, candidate.plan.time});
    asking.push_back(&candidate);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i].ticket = i;
  const memory::GrantDecision decision = memory::decide_grants(waiting, ledger.available(), now);
  wake_at_ = std::min(wake_at_, decision.next_look);
  std::vector<const Candidate*> may;
  for (const std::uint64_t ticket : decision.begin) {
    if (ticket >= those) may.push_back(asking[ticket - those]);  // else it fits again: the next plan finds it
  }
  return may;
}

// What does not fit may be passed while it is young; when it is old, nothing that would make a lease
// grow begins before it (memory/grant_queue.h). Each ledger alone: nobody waits for bytes of another one.
void Pipeline::protect_waiting(TimePoint now) {
  std::vector<Candidate> candidates;
  std::vector<planner::Contender> contenders;
  for (memory::Account* ledger : ledgers()) {
    for (const Candidate* candidate : may_begin(*ledger, now)) {
      candidates.push_back(*candidate);
      contenders.push_back(contenders_[static_cast<std::size_t>(candidate - candidates_.data())]);
    }
  }
  candidates_ = std::move(candidates);
  contenders_ = std::move(contenders);
}

bool Pipeline::dispatch(const Candidate& candidate) {
  ServedModel& model = *candidate.model;
  Group group;
  if (candidate.lane == nullptr) {
    group = std::move(model.retries.front());
    model.retries.pop_front();
  } else {
    group.rows = candidate.lane->lane.take(candidate.plan.batch);
  }
  return group.rows.empty() || run_group(candidate, std::move(group));
}

bool Pipeline::run_group(const Candidate& candidate, Group group) {
  ServedModel& model = *candidate.model;
  WorkerSlot& slot = *candidate.worker;
  const planner::Plan& plan = candidate.plan;
  std::vector<batch::RowRef> rows;
  rows.reserve(plan.units);
  for (const lane::QueuedRow& row : group.rows) {
    const request::Request* request = open_.find(row.request);
    TONNAGE_CHECK(request != nullptr, "a queued row has no request");
    for (std::uint32_t i = 0; i < row.units; ++i) rows.push_back({request, row.row + i});
  }
  const model::RowSize padded = batch::padded_size(*model.spec, rows, plan.length);
  auto inputs = batch::gather(*model.spec, rows, padded, slot.worker->input_slot(0));
  if (!inputs.is_ok()) {
    TONNAGE_BUG(inputs.status().to_string());
    for (const lane::QueuedRow& row : group.rows) open_.fail(row.request, inputs.status());
    return true;
  }
  InFlight batch;
  batch.group = std::move(group);
  batch.lane_number = candidate.number;
  batch.shape = {static_cast<std::uint32_t>(rows.size()), plan.length};
  batch.padded = padded;
  batch.grant = plan.grant;
  batch.beyond_prediction = candidate.beyond_prediction;
  batch.predicted = slot.paced(plan.time);
  batch.started = host_.loop.now();
  supervisor::RunCommand command;
  command.rows = batch.shape.rows;
  command.length = plan.length;
  command.grant = plan.grant;
  command.watchdog = model.watchdog(batch.predicted, slot);
  command.inputs = std::move(inputs).value();
  slot.in_flight = std::move(batch);
  const Status started = slot.worker->run(
      std::move(command),
      [this, &model, &slot](supervisor::RunOutcome outcome) { finished(model, slot, std::move(outcome)); });
  if (!started.is_ok()) {
    // The ledger said yes a moment ago; whoever took the room since will give it back.
    Group refused = std::move(slot.in_flight->group);
    slot.in_flight.reset();
    if (candidate.lane != nullptr) {
      candidate.lane->lane.put_back(refused.rows);
    } else {
      model.retries.push_front(std::move(refused));
    }
    return false;
  }
  arbiter_.charge(candidate.number, slot.paced(plan.time));
  if (candidate.lane != nullptr && model.metrics) {
    for (const lane::QueuedRow& row : slot.in_flight->group.rows) {
      model.metrics->left_lane(candidate.lane->is_long, slot.in_flight->started - row.enqueued);
    }
  }
  return true;
}

}  // namespace tonnage::pipeline
