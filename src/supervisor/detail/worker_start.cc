// SPDX-License-Identifier: Apache-2.0
// The beginning of a process: memory first, then the process, then the model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "supervisor/detail/worker_state.h"

namespace tonnage::supervisor {
namespace {

constexpr Duration kMemoryRetry = seconds(1);
constexpr Duration kReadingEvery = seconds(1);
constexpr Duration kTrimPatience = seconds(10);
constexpr Bytes kLoadedDocLimit = mib(1);
// Stacks of the threads that a runtime starts with its first batch: virtual bytes that RLIMIT_DATA
// counts and that nobody touches.
constexpr Bytes kStack = mib(8);

using detail::missing;

Bytes loading_charge(const WorkerOptions& options) {
  return scale(options.weight_file, options.load_factor) + options.known_base;
}

Bytes segments_charge(const WorkerOptions& options) {
  return detail::WorkerSegments::cost(options.slot_bytes, options.output_bytes);
}

}  // namespace

Bytes start_charge(const WorkerOptions& options) {
  return loading_charge(options) + segments_charge(options);
}

Bytes device_start_charge(const WorkerOptions& options) {
  const Bytes context =
      options.known_device_base > Bytes() ? options.known_device_base : detail::kContextAssumed;
  return scale(options.weight_file, options.load_factor) + context;
}

Status Worker::State::reserve() {
  const Bytes shared = segments_charge(options);
  // A second start knows what the first one needed when it was ready.
  const Bytes to_load = std::max(loading_charge(options), known_need);
  auto loading_charge = loading_account.charge(to_load);
  if (!loading_charge) return missing("loading", to_load, loading_account);
  if (host.shared_account.available() < shared) return missing("shared memory", shared, host.shared_account);
  if (device) TONNAGE_TRY(device->reserve(device_start_charge(options)));
  TONNAGE_ASSIGN(segments, detail::WorkerSegments::create(options.name, options.slot_bytes,
                                                          options.output_bytes, host.shared_account));
  loading = std::move(loading_charge).value();
  return Status::ok();
}

Status Worker::State::launch() {
  TONNAGE_ASSIGN(const UniqueFd doc, wire::sealed_text("tonnage-load", to_json(options.load)));
  std::array<UniqueFd, wire::kInputSlots> inputs;
  std::array<int, wire::kInputSlots + 2> fds{};
  fds[0] = doc.get();
  for (std::uint32_t i = 0; i < wire::kInputSlots; ++i) {
    TONNAGE_ASSIGN(inputs[i], segments->slot(i).read_only_fd());
    fds[i + 1] = inputs[i].get();
  }
  fds.back() = segments->output().fd();

  ProcessEvents events;
  events.on_packet = [this](wire::Packet packet) { on_packet(std::move(packet)); };
  events.on_bad_packet = [this](const Status& status) {
    end_process(ExitReason::Kind::kProtocol, status.to_string());
  };
  events.on_exit = [this](ExitReason reason) { on_exit(reason); };
  TONNAGE_ASSIGN(process, host.processes.start(options.command, std::move(events)));
  TONNAGE_TRY(process->send({0, wire::Hello{}}, {}));
  return process->send({0, wire::Load{segments->slot(0).size().count(), segments->output().size().count()}},
                       fds);
}

void Worker::State::try_start() {
  start_timer.reset();
  waits_for_memory = false;
  if (Status reserved = reserve(); !reserved.is_ok()) {
    if (device) device->give_back();
    last_error = std::move(reserved);
    state = WorkerState::kWaitingToStart;
    waits_for_memory = true;
    start_timer = host.loop.call_after(kMemoryRetry, [this] { try_start(); });
    // Said each time, also when the state is the same as before: someone may make room.
    announced = state;
    if (on_change) on_change();
    return;
  }
  state = WorkerState::kStarting;
  if (Status launched = launch(); !launched.is_ok()) {
    process.reset();
    give_back();
    last_error = std::move(launched);
    host.log.warn("worker_start_failed", {{"worker", options.name}, {"error", last_error.to_string()}});
    restarts.on_death(host.loop.now());
    schedule_start();
    return announce();
  }
  host.log.info("worker_started", {{"worker", options.name}, {"pid", std::int64_t{process->pid()}}});
  state = WorkerState::kLoading;
  load_timer = host.loop.call_after(options.load_timeout, [this] {
    end_process(ExitReason::Kind::kWatchdog,
                fmt::format("loading took longer than {} s", to_seconds(options.load_timeout)));
  });
  second_timer = host.loop.call_after(kReadingEvery, [this] { each_second(); });
  announce();
}

void Worker::State::schedule_start() {
  state = restarts.is_broken() ? WorkerState::kBroken : WorkerState::kWaitingToStart;
  start_timer = host.loop.call_at(restarts.next_start(), [this] { try_start(); });
}

void Worker::State::on_loaded(const wire::Loaded& loaded_message, std::vector<UniqueFd> fds) {
  if (state != WorkerState::kLoading || fds.empty()) {
    return end_process(ExitReason::Kind::kProtocol,
                       "loaded without having been asked, or without its document");
  }
  auto text = wire::read_sealed_text(fds.front().get(), kLoadedDocLimit);
  auto doc = text ? wire::parse_loaded_doc(*text) : Result<wire::LoadedDoc>(text.status());
  if (!doc) return end_process(ExitReason::Kind::kProtocol, doc.status().to_string());
  if (!read_memory()) return;  // it is gone already; the exit says why
  Status settled = settle_base(loaded_message);
  if (settled.is_ok() && device) settled = settle_device(loaded_message, *doc);
  if (settled.reason() == "load_failed") {
    last_error = settled;
    return end_process(ExitReason::Kind::kStopped, settled.detail());
  }
  if (!settled.is_ok()) {
    after_exit = AfterExit::kWaitForMemory;
    last_error = settled;
    return end_process(ExitReason::Kind::kStopped, settled.detail());
  }
  become_ready(loaded_message, std::move(doc).value());
}

Status Worker::State::settle_base(const wire::Loaded& loaded_message) {
  const Bytes anonymous = reading.anonymous;
  known_need = anonymous;
  // The loading charge becomes weights and base, so that nobody can take the bytes in between.
  if (anonymous > loading.amount() && !loading.grow_to(anonymous).is_ok()) {
    const Bytes more = anonymous - loading.amount();
    return missing("the loaded model", more, loading_account);
  }
  weights = loading.split(device ? Bytes() : std::min(loaded_message.weights, anonymous));
  base = loading.split(anonymous - weights.amount());
  loading.release();
  TONNAGE_TRY(weights.transfer(weights_account));
  return base.transfer(base_account);
}

Status Worker::State::settle_device(const wire::Loaded& loaded_message, const wire::LoadedDoc& doc) {
  const auto where = doc.facts.find("device");
  if (where == doc.facts.end() || where->second != host.device->name) {
    return {Code::kUnavailable, "load_failed",
            fmt::format("wrong_device: the worker says that its model is on '{}', asked for was {}",
                        where == doc.facts.end() ? "the host" : where->second, host.device->name)};
  }
  Bytes reserved = loaded_message.live;
  if (const auto told = doc.facts.find("reserved_bytes"); told != doc.facts.end())
    reserved = std::max(reserved, Bytes(std::strtoull(told->second.c_str(), nullptr, 10)));
  return device->settle(process->pid(), loaded_message.weights, reserved);
}

void Worker::State::become_ready(const wire::Loaded& loaded_message, wire::LoadedDoc doc) {
  peak_is_known = process->reset_resident_peak().is_ok();
  lease.emplace(lease_account, reading.anonymous, reading.data + kStack * options.threads,
                options.charged_per_byte);
  retention.emplace(loaded_message.live);
  loaded = std::move(doc);
  told_weights = loaded_message.weights;
  live_baseline = loaded_message.live;
  live = loaded_message.live;
  last_error = Status::ok();
  load_timer.reset();
  restarts.on_ready(host.loop.now());
  state = WorkerState::kReady;
  host.log.info("worker_ready", {{"worker", options.name},
                                 {"runtime", loaded->runtime},
                                 {"base_bytes", base.amount().count()},
                                 {"weight_bytes", weights.amount().count()}});
  ask_stats();
  announce();
}

void Worker::State::on_failed(const wire::Failed& failed) {
  if (state != WorkerState::kLoading) {
    return end_process(ExitReason::Kind::kProtocol, "failed after it had loaded");
  }
  const std::string why = fmt::format("{}: {}", failed.reason, failed.text);
  last_error = Status(Code::kUnavailable, "load_failed", why);
  end_process(ExitReason::Kind::kStopped, why);
}

void Worker::State::each_second() {
  second_timer = host.loop.call_after(kReadingEvery, [this] { each_second(); });
  if (ending || !read_memory()) return;
  if (device) device->look(process->pid(), !flight);
  if (lease) {
    lease->observe(reading.anonymous);
  } else if (reading.anonymous > loading.amount()) {
    // More than was reserved for loading is in use: a fact, whether there is room for it or not.
    loading.merge(loading_account.record(reading.anonymous - loading.amount()));
  }
  if (ran_since_stats) ask_stats();
  if (trim_asked && !flight && host.loop.now() - *trim_asked > kTrimPatience) {
    end_process(ExitReason::Kind::kWatchdog, "it did not answer trim");
  }
}

}  // namespace tonnage::supervisor
