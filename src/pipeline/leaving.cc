// SPDX-License-Identifier: Apache-2.0
// How workers are replaced and models removed while the others serve.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pipeline/pipeline.h"

namespace tonnage::pipeline {
namespace {

// A seat has two names, so that a standby has accounts of its own beside the worker it replaces.
std::string other_name(const std::string& name) {
  return name.ends_with('b') ? name.substr(0, name.size() - 1) : name + 'b';
}

}  // namespace

supervisor::WorkerOptions Pipeline::standby_options(const ServedModel& model, std::size_t seat) const {
  const supervisor::Worker& present = *model.workers[seat].worker;
  supervisor::WorkerOptions options = worker_options(model, seat);
  options.name = other_name(present.options().name);
  // As the present one was loaded: its weights as counted, where the file says less.
  options.weight_file = std::max(options.weight_file, present.memory().weights);
  options.known_base = present.memory().base;
  if (const auto& device = present.memory().device) options.known_device_base = device->base;
  return options;
}

Rotator::Host Pipeline::rotator_host() {
  Rotator::Host host{host_.loop, host_.log, host_.metrics, {}, {}, {}, {}, {}, {}, {}, {}};
  host.ledger = [this](const ServedModel& model) -> memory::Account& { return ledger_of(model); };
  host.forget_worker = [this](const ServedModel& model, const std::string& worker) {
    forget_worker(model.device, worker);
  };
  host.standby_options = [this](const ServedModel& model, std::size_t seat) {
    return standby_options(model, seat);
  };
  host.make_worker = [this](ServedModel& model, supervisor::WorkerOptions options) {
    return make_worker(model, std::move(options));
  };
  host.models = [this] {
    std::vector<ServedModel*> all;
    for (auto& [name, model] : models_) all.push_back(model.get());
    return all;
  };
  host.returnable = [this](const ServedModel& model) { return returnable(model); };
  host.make_room = [this] { make_room(); };
  host.drive = [this] { schedule_drive(); };
  return host;
}

void Pipeline::rotate(std::string_view model, Completion<RotationReport> done) {
  const auto found = models_.find(model);
  if (found == models_.end()) {
    return done.answer(Status(Code::kNotFound, "unknown_model", fmt::format("'{}' is not loaded", model)));
  }
  rotator_.rotate(*found->second, std::move(done));
}

Status Pipeline::remove_model(std::string_view name, Duration drain, UniqueFunction<void()> gone) {
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return {Code::kNotFound, "unknown_model", fmt::format("'{}' is not loaded", name)};
  }
  ServedModel& model = *found->second;
  if (gone) model.when_gone.push_back(std::move(gone));
  model.leave_by = std::min(model.leave_by, host_.loop.now() + drain);
  if (!std::exchange(model.is_leaving, true)) {
    model.trouble = Status(Code::kUnavailable, "unloading", "the model is being unloaded");
    model.warm_up_again.reset();
    rotator_.abandon(model);
    host_.log.info("model_leaving", {{"model", name}, {"waiting_rows", std::uint64_t{model.waiting_rows()}}});
    if (on_model_change_) on_model_change_();
  }
  schedule_drive();
  return Status::ok();
}

// At the beginning of a turn: nobody else holds a reference to a model then.
void Pipeline::look_after_leaving(TimePoint now) {
  std::vector<std::string> gone;
  for (auto& [name, model] : models_) {
    if (model->is_leaving && let_go(*model, now)) gone.push_back(name);
  }
  for (const std::string& name : gone) forget(name);
}

bool Pipeline::let_go(ServedModel& model, TimePoint now) {
  const auto is_running = [](const WorkerSlot& slot) { return slot.in_flight.has_value(); };
  if (!model.workers_stopped) {
    const bool has_rows = model.waiting_rows() > 0 || std::ranges::any_of(model.workers, is_running);
    if (has_rows && now < model.leave_by) {
      wake_at_ = std::min(wake_at_, model.leave_by);
      return false;
    }
    fail_waiting(model, model.trouble);
    for (WorkerSlot& slot : model.workers) {
      if (!slot.in_flight) continue;
      for (const lane::QueuedRow& row : slot.in_flight->group.rows) open_.fail(row.request, model.trouble);
    }
    save_profile(model);
    model.workers_stopped = true;
    for (WorkerSlot& slot : model.workers) slot.worker->stop(has_rows ? Duration{} : kStopGrace);
  }
  return !rotator_.holds(model) && std::ranges::none_of(model.workers, [&](const WorkerSlot& slot) {
    return slot.worker->has_process() || is_running(slot);
  });
}

void Pipeline::forget_worker(memory::DeviceLedger* device, const std::string& worker) {
  host_.budget.root().child("workers").remove_child(worker);
  if (device != nullptr) device->root().child("workers").remove_child(worker);
}

void Pipeline::forget(const std::string& name) {
  const auto node = models_.extract(name);
  std::unique_ptr<ServedModel> model = std::move(node.mapped());
  for (const LaneSlot& slot : model->lanes) {
    arbiter_.forget(slot.number);
    free_lane_numbers_.push_back(slot.number);
  }
  std::vector<std::string> workers;
  for (const WorkerSlot& slot : model->workers) workers.push_back(slot.worker->options().name);
  std::vector<UniqueFunction<void()>> when_gone = std::move(model->when_gone);
  memory::DeviceLedger* const device = model->device;
  model.reset();
  for (const std::string& worker : workers) forget_worker(device, worker);
  host_.log.info("model_gone", {{"model", name}});
  for (auto& call : when_gone) call();
  if (on_model_change_) on_model_change_();
}

}  // namespace tonnage::pipeline
