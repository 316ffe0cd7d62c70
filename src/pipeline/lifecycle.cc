// SPDX-License-Identifier: Apache-2.0
// How a model becomes ready: workers, warm-up, profiles.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batch/gather.h"
#include "model/model_toml.h"
#include "model/route.h"
#include "pipeline/pipeline.h"

namespace tonnage::pipeline {
namespace {

using supervisor::WorkerState;

constexpr Duration kMakeRoomEvery = seconds(1);
constexpr Duration kStartAgainEvery = milliseconds(50);
constexpr Duration kWarmUpAgain = milliseconds(500);
constexpr std::uint64_t kMostDoublings = 6;
constexpr std::uint32_t kNothingLearned = 0;
constexpr std::string_view kCeilingKey = ":ceiling";

}  // namespace

supervisor::WorkerOptions Pipeline::worker_options(const ServedModel& model, std::size_t seat) const {
  const model::LongExecutor& longs = model.spec->long_executor;
  const bool for_long = seat >= model.spec->workers;
  model::ModelSpec spec = *model.spec;
  if (for_long) spec.threads = longs.threads;
  // On a device one thread starts kernels and waits for them.
  if (spec.threads == 0) spec.threads = spec.device.empty() ? options_.compute_tokens : 1;
  supervisor::WorkerOptions options;
  options.name = fmt::format("{}/{}/{}", spec.name, spec.version, seat);
  options.command = options_.launch(spec);
  options.command.idle_priority = for_long && longs.is_idle_priority;
  options.threads = spec.threads;
  options.load = model::to_load_doc(spec);
  options.load.threads = options.threads;
  options.weight_file = model::weight_file_bytes(spec);
  options.load_factor = model::route_of(spec.route).load_factor;
  options.charged_per_byte = model::charged_per_byte(model::route_of(spec.route).tier);
  options.slot_bytes = batch::layout_bytes(spec, spec.batching.max_rows, spec.largest_size());
  options.output_bytes = batch::output_bytes(spec, spec.batching.max_rows, spec.largest_size());
  return options;
}

std::unique_ptr<supervisor::Worker> Pipeline::make_worker(ServedModel& model,
                                                          supervisor::WorkerOptions options) {
  memory::Account& root = host_.budget.root();
  const std::string name = options.name;
  supervisor::Worker::Host host{host_.loop,           host_.processes, root.child("workers").child(name),
                                root.child("shared"), host_.log,       {}};
  if (model.device != nullptr) {
    host.device.emplace(supervisor::Worker::OnDevice{
        model.device->name(), model.device->root().child("workers").child(name), model.device->driver()});
  }
  return std::make_unique<supervisor::Worker>(std::move(options), host,
                                              [this, &model, name] { worker_changed(model, name); });
}

void Pipeline::start_workers(ServedModel& model) {
  const std::size_t longs = model.is_split() ? model.spec->long_executor.count : 0;
  for (std::size_t seat = 0; seat < model.spec->workers + longs; ++seat) {
    supervisor::WorkerOptions options = worker_options(model, seat);
    WorkerSlot& slot = model.workers.emplace_back();
    if (model.is_split()) slot.serves = seat < model.spec->workers ? Serves::kShort : Serves::kLong;
    slot.tokens = options.command.idle_priority ? 0 : options.threads;
    slot.worker = make_worker(model, std::move(options));
  }
  for (WorkerSlot& slot : model.workers) slot.worker->start();
}

void Pipeline::worker_changed(ServedModel& model, const std::string& worker) {
  const auto found = std::ranges::find_if(
      model.workers, [&](const WorkerSlot& slot) { return slot.worker->options().name == worker; });
  // Rotation and leaving go on with every change, also of a worker that has no seat.
  if (rotator_.holds(model) || model.is_leaving) schedule_drive();
  if (found == model.workers.end()) return;
  WorkerSlot& slot = *found;
  const TimePoint now = host_.loop.now();
  switch (slot.worker->state()) {
    case WorkerState::kLoading:
      slot.starting_since = now;
      // The memory that it waited for came.
      if (model.phase == ModelPhase::kLoading && model.trouble.reason() == "over_budget")
        model.trouble = Status::ok();
      return;
    case WorkerState::kStarting:
    case WorkerState::kBusy: return;
    case WorkerState::kReady:
      if (slot.starting_since != kNever) {
        model.cold_start = now - std::exchange(slot.starting_since, kNever);
        slot.ready_since = now;
        slot.grant_when_ready = slot.worker->largest_grant();
        // Costs are learned on a worker as most of them are.
        if (model.phase == ModelPhase::kLoading && slot.serves != Serves::kLong)
          begin_warm_up(model, *slot.worker);
        if (model.phase == ModelPhase::kReady) model.trouble = Status::ok();
      }
      schedule_drive();
      return;
    case WorkerState::kWaitingToStart:
      if (slot.worker->last_error().reason() == "over_budget") {
        a_start_waits_for_memory_ = true;
        make_room();
      }
      break;
    case WorkerState::kBroken:
    case WorkerState::kStopped: break;
  }
  worker_lost(model, *slot.worker);
}

void Pipeline::worker_lost(ServedModel& model, const supervisor::Worker& worker) {
  // What it means that a warm-up lost its worker is said when that has ended.
  if (model.warm_up && model.warm_up->runs_on(worker)) return;
  // A model that failed for good keeps its own reason, and so does one that leaves; their stopped workers
  // have none of interest.
  if (model.phase != ModelPhase::kFailed && !model.is_leaving && !worker.last_error().is_ok()) {
    model.trouble = worker.last_error();
  }
  if (!draining_ && !model.is_leaving && model.phase == ModelPhase::kReady && !model.accepts()) {
    // The breaker is open: what waits is told now instead of at its deadline.
    fail_waiting(model, {Code::kUnavailable, "worker_broken",
                         "the model's worker keeps dying: " + model.trouble.detail()});
  }
  if (on_model_change_) on_model_change_();
}

void Pipeline::fail_waiting(ServedModel& model, const Status& status) {
  for (const lane::QueuedRow& row : model.waiting()) open_.fail(row.request, status);
}

void Pipeline::begin_warm_up(ServedModel& model, supervisor::Worker& worker) {
  const wire::LoadedDoc& loaded = *worker.loaded();
  Result<model::ModelSpec> merged = model::merge_loaded(*model.spec, loaded);
  Result<std::string> print = merged.is_ok() ? model::fingerprint(*merged, loaded.runtime) : merged.status();
  if (!print.is_ok()) {
    model.phase = ModelPhase::kFailed;
    model.trouble = print.status();
    host_.log.error("model_failed", {{"model", model.spec->name}, {"why", model.trouble.detail()}});
    for (WorkerSlot& slot : model.workers) slot.worker->stop(Duration{});
    return;
  }
  model.spec = std::make_shared<const model::ModelSpec>(std::move(merged).value());
  model.fingerprint = std::move(print).value();
  if (host_.profiles != nullptr) {
    if (const auto rows = host_.profiles->load(model.fingerprint + std::string(kCeilingKey))) {
      const auto ceiling = static_cast<std::uint32_t>(std::strtoul(rows->c_str(), nullptr, 10));
      if (ceiling != kNothingLearned) model.ladder.restore(ceiling);
    }
    if (const auto text = host_.profiles->load(model.fingerprint)) {
      Result<cost::CostModel> known = cost::CostModel::from_text(*text, cost_options(*model.spec));
      if (known.is_ok()) {
        host_.log.info("profile_known", {{"model", model.spec->name}, {"fingerprint", model.fingerprint}});
        return warmed_up(model, std::move(known));
      }
      host_.log.warn("profile_unreadable", {{"model", model.spec->name}, {"why", known.status().detail()}});
    }
  }
  model.phase = ModelPhase::kWarmingUp;
  model.warm_up = std::make_unique<WarmUp>(
      host_.loop, model.spec, worker, model.warm_ups++, [this, &model](Result<cost::CostModel> cost) {
        // Not inside the warm-up's own call: it is destroyed here.
        host_.loop.post(
            [this, &model, alive = std::weak_ptr<bool>(model.alive), cost = std::move(cost)]() mutable {
              if (alive.expired()) return;
              if (auto rest = model.warm_up->take_rest(); rest && !cost.is_ok())
                model.half_learned.emplace(model.fingerprint, std::move(*rest));
              model.warm_up.reset();
              warmed_up(model, std::move(cost));
              save_profile(model);
            });
      });
  if (model.warms_up_again()) model.trouble = Status::ok();
  if (auto rest = std::exchange(model.half_learned, std::nullopt); rest && rest->first == model.fingerprint)
    model.warm_up->go_on_with(std::move(rest->second));
  model.warm_up->start();
}

void Pipeline::warmed_up(ServedModel& model, Result<cost::CostModel> cost) {
  if (!cost.is_ok()) {
    // Back to loading: the worker that replaces the lost one is warmed up again.
    model.phase = ModelPhase::kLoading;
    model.trouble = cost.status();
    host_.log.error("warm_up_failed", {{"model", model.spec->name}, {"why", model.trouble.detail()}});
    // Memory may have been short for a while only, and the worker may still be there.
    const auto attempt = std::min<std::uint64_t>(model.warm_ups, kMostDoublings);
    model.warm_up_again = host_.loop.call_after(kWarmUpAgain * (1U << attempt), [this, &model] {
      if (model.phase != ModelPhase::kLoading || model.warm_up) return;
      if (WorkerSlot* idle = model.idle_worker(false)) begin_warm_up(model, *idle->worker);
    });
  } else {
    model.cost.emplace(std::move(cost).value());
    model.refresh_row_work();
    model.phase = ModelPhase::kReady;
    model.trouble = Status::ok();
    model.ready_since = host_.loop.now();
    host_.log.info("model_ready", {{"model", model.spec->name},
                                   {"version", model.spec->version},
                                   {"cold_start_ms", to_millis(model.cold_start)}});
    rotator_.look();
    schedule_drive();
  }
  if (on_model_change_) on_model_change_();
}

void Pipeline::save_profile(const ServedModel& model) {
  if (host_.profiles == nullptr || !model.cost) return;
  host_.profiles->save(model.fingerprint, model.cost->to_text());
  const std::uint32_t ceiling = model.ladder.learned_ceiling();
  // max_rows as written is nothing learned: it may be another one the next time.
  const bool is_learned = ceiling < model.spec->batching.max_rows;
  host_.profiles->save(model.fingerprint + std::string(kCeilingKey),
                       std::to_string(is_learned ? ceiling : kNothingLearned));
}

// Runs on each charge that is given back, so it only looks at flags.
void Pipeline::memory_came_back() {
  if (someone_waits_for_memory_) schedule_drive();
  if (!a_start_waits_for_memory_ || host_.loop.now() - last_start_try_ < kStartAgainEvery) return;
  a_start_waits_for_memory_ = false;
  last_start_try_ = host_.loop.now();
  host_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    for (auto& [name, model] : models_) {
      for (WorkerSlot& slot : model->workers) slot.worker->memory_released();
    }
  });
}

// Runs on each charge that is refused, so it only arms a timer.
void Pipeline::make_room() {
  if (room_making_) return;
  const TimePoint at = std::max(host_.loop.now(), last_room_making_ + kMakeRoomEvery);
  room_making_ = host_.loop.call_at(at, [this] { trim_workers(); });
}

// A busy one when its batch ends; leases follow the next reading.
void Pipeline::trim_workers() {
  room_making_.reset();
  last_room_making_ = host_.loop.now();
  for (auto& [name, model] : models_) {
    for (WorkerSlot& slot : model->workers) {
      if (slot.worker->lease() > Bytes()) slot.worker->trim();
    }
  }
}

}  // namespace tonnage::pipeline
