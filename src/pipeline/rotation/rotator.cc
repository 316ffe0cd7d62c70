// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rotation/rotator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "telemetry/metric_names.h"

namespace tonnage::pipeline {
namespace {

using supervisor::WorkerState;
namespace metric = telemetry::metric;

constexpr Duration kLookEvery = seconds(1);

bool serves(const supervisor::Worker& worker) {
  return worker.state() == WorkerState::kReady || worker.state() == WorkerState::kBusy;
}

bool has_lines(const model::RotationOptions& options) {
  return options.resident_above > Bytes() || options.max_age > Duration{} ||
         options.retention_within > Duration{};
}

Status refused(const RotationDecision& decision, Bytes charge, Bytes available) {
  if (decision.why == "no_room") {
    return {Code::kUnavailable, "over_budget",
            fmt::format("a standby takes {}, {} are free, and when_tight is \"refuse\"", format_bytes(charge),
                        format_bytes(available))};
  }
  return {Code::kUnavailable, "line_too_low", "resident_above lies below what a fresh worker holds"};
}

// Before there is a process: all that it takes to load, and that its check can begin.
Bytes charge_of(const ServedModel& model, const supervisor::WorkerOptions& standby) {
  const Bytes start =
      model.device != nullptr ? supervisor::device_start_charge(standby) : supervisor::start_charge(standby);
  return start + check_room(*model.spec, *model.cost);
}

}  // namespace

Rotator::~Rotator() { stop(); }

void Rotator::rotate(ServedModel& model, Completion<RotationReport> done) {
  const std::string& name = model.spec->name;
  if (!model.accepts() || is_stopped_) {
    return done.answer(Status(Code::kUnavailable, "not_ready", fmt::format("'{}' is not ready", name)));
  }
  if (asks_.contains(name)) {
    return done.answer(Status(Code::kAlreadyExists, "already_rotating",
                              fmt::format("the workers of '{}' are being rotated already", name)));
  }
  for (WorkerSlot& slot : model.workers) slot.rotation = {.is_asked = true};
  asks_.emplace(name, Ask{model.workers.size(), {}, std::move(done)});
  look();
}

void Rotator::look() {
  if (is_stopped_) return;
  const TimePoint now = host_.loop.now();
  bool watches = false;
  for (ServedModel* model : host_.models()) {
    if (model->phase != ModelPhase::kReady || model->is_leaving) continue;
    for (std::size_t seat = 0; seat < model->workers.size(); ++seat) watches |= look_at(*model, seat, now);
  }
  next_look_.reset();
  if (!watches) return;
  TimePoint next = now + kLookEvery;
  if (not_before_ > now) next = std::min(next, not_before_);
  next_look_ = host_.loop.call_at(next, [this] { look(); });
}

RotationState Rotator::state_of(const WorkerSlot& slot, TimePoint now) {
  const supervisor::WorkerMemory memory = slot.worker->memory();
  RotationState state;
  state.is_asked = slot.rotation.is_asked;
  state.resident = memory.in_use();
  state.resident_when_ready = memory.when_ready();
  if (slot.ready_since != kNever) state.age = now - slot.ready_since;
  if (memory.retention.is_named) state.full_in = memory.retention.time_left;
  return state;
}

void Rotator::add_memory(RotationState& state, const ServedModel& model, const WorkerSlot& slot,
                         const supervisor::WorkerOptions& standby) const {
  state.another_runs = is_running();
  state.not_before = not_before_;
  state.charge = charge_of(model, standby);
  state.available = host_.ledger(model).available();
  state.held = slot.worker->charged();
  state.returnable = host_.returnable(model);
  state.short_since = slot.rotation.short_since;
}

bool Rotator::look_at(ServedModel& model, std::size_t seat, TimePoint now) {
  WorkerSlot& slot = model.workers[seat];
  const bool watches = slot.rotation.is_asked || has_lines(model.spec->rotation);
  if (slot.rotation.is_asked && slot.worker->state() == supervisor::WorkerState::kBroken) {
    settle_ask(model, seat, slot.worker->last_error(), {});
    return watches;
  }
  if (!watches || !serves(*slot.worker)) return watches;
  RotationState state = state_of(slot, now);
  if (!rotation_reason(model.spec->rotation, state)) {
    slot.rotation = {};
    return true;
  }
  supervisor::WorkerOptions standby = host_.standby_options(model, seat);
  add_memory(state, model, slot, standby);
  const RotationDecision decision = decide_rotation(model.spec->rotation, state, now);
  switch (decision.step) {
    case RotationStep::kKeep: slot.rotation = {}; break;
    case RotationStep::kWait: break;
    case RotationStep::kMakeRoom:
      slot.rotation.short_since = std::min(slot.rotation.short_since, now);
      host_.make_room();
      break;
    case RotationStep::kStart:
    case RotationStep::kDrop: begin(model, seat, decision, std::move(standby)); break;
    case RotationStep::kRefuse: refuse(model, seat, decision, state.charge); break;
  }
  return true;
}

void Rotator::refuse(ServedModel& model, std::size_t seat, const RotationDecision& decision, Bytes charge) {
  WorkerSlot& slot = model.workers[seat];
  const Status why = refused(decision, charge, host_.ledger(model).available());
  if (!std::exchange(slot.rotation.was_refused, true)) {
    host_.log.warn("rotation_refused", {{"model", model.spec->name},
                                        {"worker", slot.worker->options().name},
                                        {"reason", reason_name(decision.reason)},
                                        {"why", why.detail()}});
    count(model, decision.reason, "refused");
  }
  settle_ask(model, seat, why, Bytes());
}

void Rotator::begin(ServedModel& model, std::size_t seat, const RotationDecision& decision,
                    supervisor::WorkerOptions standby) {
  WorkerSlot& slot = model.workers[seat];
  slot.rotation.short_since = kNever;
  slot.rotation.was_refused = false;
  host_.log.info("rotation_begun", {{"model", model.spec->name},
                                    {"worker", slot.worker->options().name},
                                    {"standby", standby.name},
                                    {"reason", reason_name(decision.reason)},
                                    {"drops", decision.step == RotationStep::kDrop},
                                    {"charge_bytes", charge_of(model, standby).count()}});
  running_.emplace(Running());
  running_->model = &model;
  running_->seat = seat;
  running_->reason = decision.reason;
  running_->drops = decision.step == RotationStep::kDrop;
  running_->began = host_.loop.now();
  running_->standby = host_.make_worker(model, std::move(standby));
  if (running_->drops) {
    running_->phase = Phase::kDraining;
    slot.is_held = true;
    host_.drive();
  } else {
    // For what the standby needs beyond loading.
    auto room = host_.ledger(model).child("rotation").charge(check_room(*model.spec, *model.cost));
    if (!room.is_ok()) return fail(room.status());
    running_->room = std::move(room).value();
    running_->standby->start();
  }
}

void Rotator::advance() {
  while (running_ && step()) {
  }
}

// True: something changed, and more may be possible now.
bool Rotator::step() {
  Running& r = *running_;
  const WorkerSlot& slot = r.slot();
  const bool between_batches = !slot.in_flight && slot.worker->state() != WorkerState::kBusy;
  switch (r.phase) {
    case Phase::kLoading: return step_loading();
    case Phase::kChecking:
      if (!*r.checked) return false;
      r.check.reset();
      if (const Status checked = **r.checked; !checked.is_ok()) {
        fail(checked);
      } else {
        r.phase = Phase::kReady;
      }
      return true;
    case Phase::kReady:
      if (!r.standby->is_idle()) {
        fail(r.standby->last_error());
        return true;
      }
      if (between_batches) take_over();
      return between_batches;
    case Phase::kDraining:
      if (between_batches) take_over();
      return between_batches;
    case Phase::kEnding:
      if (r.retiring->has_process()) return false;
      retired();
      return true;
    case Phase::kReloading: return step_reloading();
  }
  return false;
}

bool Rotator::step_loading() {
  Running& r = *running_;
  const WorkerState state = r.standby->state();
  if (state == WorkerState::kStarting || state == WorkerState::kLoading) return false;
  if (state != WorkerState::kReady) {
    fail(r.standby->last_error());
    return true;
  }
  ServedModel& model = *r.model;
  r.load_time = host_.loop.now() - r.began;
  r.phase = Phase::kChecking;
  r.room.release();
  r.checked = std::make_shared<std::optional<Status>>();
  r.check =
      std::make_unique<StandbyCheck>(host_.loop, model.spec, *r.standby,
                                     check_shapes(*model.spec, *model.cost, host_.ledger(model).available()),
                                     [checked = r.checked, drive = host_.drive](Status status) {
                                       *checked = std::move(status);
                                       drive();
                                     });
  r.check->start();
  return true;
}

bool Rotator::step_reloading() {
  Running& r = *running_;
  const supervisor::Worker& worker = *r.slot().worker;
  if (serves(worker)) {
    r.load_time = r.model->cold_start;
    finish();
    return true;
  }
  // It is a worker like any other now, and is started again like any other.
  const bool has_failed = worker.state() == WorkerState::kBroken || worker.deaths() > 0;
  if (has_failed) {
    r.failure = worker.last_error();
    finish();
  }
  return has_failed;
}

void Rotator::take_over() {
  Running& r = *running_;
  WorkerSlot& slot = r.slot();
  r.before = slot.worker->charged();
  r.model->retired_deaths += slot.worker->deaths();
  std::swap(slot.worker, r.standby);
  slot.is_held = false;
  slot.starting_since = kNever;
  slot.ready_since = kNever;
  if (!r.drops) {
    slot.ready_since = host_.loop.now();
    slot.grant_when_ready = slot.worker->largest_grant();
    r.model->cold_start = r.load_time;
    r.model->trouble = Status::ok();
  }
  retire(std::move(r.standby), kStopGrace);
}

void Rotator::fail(Status why) {
  Running& r = *running_;
  r.failure =
      why.is_ok() ? Status(Code::kUnavailable, "standby_lost", "the standby was lost") : std::move(why);
  r.slot().is_held = false;
  retire(std::move(r.standby), Duration{});
}

void Rotator::retire(std::unique_ptr<supervisor::Worker> worker, Duration grace) {
  running_->phase = Phase::kEnding;
  running_->room.release();
  running_->retiring = std::move(worker);
  running_->retiring->stop(grace);
}

void Rotator::retired() {
  Running& r = *running_;
  const std::string name = r.retiring->options().name;
  r.retiring.reset();
  r.check.reset();
  host_.forget_worker(*r.model, name);
  if (!r.drops || !r.failure.is_ok()) return finish();
  // In the turn in which the memory came back: nobody else was asked yet.
  r.phase = Phase::kReloading;
  r.slot().worker->start();
}

void Rotator::finish() {
  const Running r = std::move(*running_);
  running_.reset();
  ServedModel& model = *r.model;
  const WorkerSlot& slot = model.workers[r.seat];
  const bool is_done = r.failure.is_ok();
  const Bytes given_back = is_done ? saturating_sub(r.before, slot.worker->charged()) : Bytes();
  host_.log.write(is_done ? telemetry::Level::kInfo : telemetry::Level::kWarning,
                  is_done ? "rotated" : "rotation_failed",
                  {{"model", model.spec->name},
                   {"worker", slot.worker->options().name},
                   {"reason", reason_name(r.reason)},
                   {"took_ms", to_millis(host_.loop.now() - r.began)},
                   {"before_bytes", r.before.count()},
                   {"given_back_bytes", given_back.count()},
                   {"why", r.failure.is_ok() ? "" : r.failure.detail()}});
  count(model, r.reason, is_done ? "done" : "failed");
  if (host_.metrics != nullptr) {
    host_.metrics->counter(metric::kRotationGivenBack, {{"model", model.spec->name}}).add(given_back.count());
  }
  failures_ = is_done ? 0 : failures_ + 1;
  not_before_ = host_.loop.now() + rotation_pause(is_done ? r.load_time : model.cold_start, failures_);
  settle_ask(model, r.seat, r.failure, given_back);
  look();
}

void Rotator::settle_ask(ServedModel& model, std::size_t seat, const Status& failure, Bytes given_back) {
  const auto found = asks_.find(model.spec->name);
  if (found == asks_.end() || !std::exchange(model.workers[seat].rotation.is_asked, false)) return;
  Ask& ask = found->second;
  if (failure.is_ok()) ++ask.report.workers;
  ask.report.given_back += given_back;
  if (failure.is_ok() && --ask.left > 0) return;
  for (WorkerSlot& slot : model.workers) slot.rotation.is_asked = false;
  Ask answered = std::move(ask);
  asks_.erase(found);
  if (failure.is_ok()) return answered.done.answer(answered.report);
  answered.done.answer(failure);
}

void Rotator::abandon(const ServedModel& model) {
  const Status why(Code::kUnavailable, "unloading", "the model is being unloaded");
  if (const auto found = asks_.find(model.spec->name); found != asks_.end()) {
    Ask ask = std::move(found->second);
    asks_.erase(found);
    ask.done.answer(why);
  }
  if (!holds(model)) return;
  if (running_->phase == Phase::kEnding) {
    // What was dropped is not loaded again.
    if (running_->drops && running_->failure.is_ok()) running_->failure = why;
    return;
  }
  if (running_->phase == Phase::kReloading) {
    running_->failure = why;
    return finish();
  }
  fail(why);
}

void Rotator::stop() {
  if (std::exchange(is_stopped_, true)) return;
  next_look_.reset();
  for (auto& [name, ask] : asks_) {
    ask.done.answer(Status(Code::kUnavailable, "draining", "the server is shutting down"));
  }
  asks_.clear();
  if (!running_) return;
  if (running_->standby) running_->standby->stop(Duration{});
  if (running_->retiring) running_->retiring->stop(Duration{});
}

Bytes Rotator::held(const ServedModel& model) const {
  if (!running_ || running_->model->device != model.device) return Bytes();
  Bytes held = running_->room.amount();
  if (running_->standby) held += running_->standby->charged();
  if (running_->retiring) held += running_->retiring->charged();
  return held;
}

void Rotator::count(const ServedModel& model, RotationReason reason, std::string_view result) const {
  if (host_.metrics == nullptr) return;
  host_.metrics
      ->counter(metric::kRotations, {{"model", model.spec->name},
                                     {"reason", std::string(reason_name(reason))},
                                     {"result", std::string(result)}})
      .add();
}

}  // namespace tonnage::pipeline
