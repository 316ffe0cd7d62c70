// SPDX-License-Identifier: Apache-2.0
// Batches: one at a time, each with a ticket that its one answer must carry.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "supervisor/detail/worker_state.h"

namespace tonnage::supervisor {
namespace {

constexpr Duration kReadingIsFresh = milliseconds(50);
// An output region may grow to this, whatever the spec said about outputs.
constexpr Bytes kRegionFloor = mib(64);
constexpr std::uint64_t kRegionGrowth = 16;

// How far into the region the outputs reach; more than any region where they lie.
Bytes reach_of(const std::vector<wire::TensorLayout>& outputs) {
  std::uint64_t reach = 0;
  for (const auto& output : outputs) {
    const auto end = checked_add(output.offset, output.bytes);
    if (!end) return Bytes::max();
    reach = std::max(reach, *end);
  }
  return Bytes(reach);
}

RunFailure failure_of(wire::ErrorKind kind) {
  switch (kind) {
    case wire::ErrorKind::kOverGrant: return RunFailure::kOverGrant;
    case wire::ErrorKind::kPressure: return RunFailure::kPressure;
    case wire::ErrorKind::kStickyDevice: return RunFailure::kStickyDevice;
    case wire::ErrorKind::kBadOutput: return RunFailure::kBadOutput;
    case wire::ErrorKind::kBadRequest:
    case wire::ErrorKind::kModelError: return RunFailure::kModelError;
  }
  return RunFailure::kModelError;
}

}  // namespace

Status Worker::State::run(RunCommand command, UniqueFunction<void(RunOutcome)> done) {
  if (state != WorkerState::kReady) {
    TONNAGE_BUG("a batch was given to a worker that is not idle");
    return {Code::kUnavailable, "not_idle", options.name + " is not idle"};
  }
  if (command.inputs.size() > wire::kMaxTensors || command.slot >= wire::kInputSlots) {
    return internal("bad_run",
                    fmt::format("{} inputs in slot {}; {} inputs and {} slots are allowed",
                                command.inputs.size(), command.slot, wire::kMaxTensors, wire::kInputSlots));
  }
  const bool needs_reading = lease->needs_reading(device ? Bytes() : command.grant);
  TONNAGE_TRY(begin_grant(command.grant));
  // A driver maps address space as it likes; a process that uses one has no limit on it.
  if (!device && lease->data_limit() > data_limit) {
    data_limit = lease->data_limit();
    // An error means that it is gone; its exit answers the batch.
    if (const Status limited = process->limit_data(data_limit); !limited.is_ok()) {
      host.log.warn("worker_limit_failed", {{"worker", options.name}, {"error", limited.to_string()}});
    }
  }
  const TimePoint now = host.loop.now();
  const std::uint64_t ticket = next_ticket++;
  flight.emplace(
      Flight{ticket, std::move(done), now, command.grant, command.rows, command.length, needs_reading});
  state = WorkerState::kBusy;
  announced = WorkerState::kBusy;  // the caller knows
  watchdog_at = now + command.watchdog;
  arm_watchdog();
  const Status sent = process->send({ticket, wire::Run{command.slot, command.rows, command.length,
                                                       command.grant, std::move(command.inputs)}},
                                    {});
  if (!sent.is_ok()) {
    // Not from inside run(): the caller may change its lists while it iterates over workers.
    host.loop.post([this, guard = std::weak_ptr<bool>(alive), ticket, sent] {
      if (guard.expired() || !flight || flight->ticket != ticket) return;
      end_process(ExitReason::Kind::kProtocol, "it takes no messages: " + sent.to_string());
    });
  }
  return Status::ok();
}

// One timer is moved on lazily: most batches end long before it, and arming one per batch would cost
// more than the batch's own message.
void Worker::State::arm_watchdog() {
  if (watchdog_timer && watchdog_armed_for <= watchdog_at) return;
  watchdog_armed_for = watchdog_at;
  watchdog_timer = host.loop.call_at(watchdog_at, [this] { on_watchdog(); });
}

void Worker::State::on_watchdog() {
  watchdog_timer.reset();
  if (!flight || ending) return;
  if (host.loop.now() < watchdog_at) return arm_watchdog();
  end_process(ExitReason::Kind::kWatchdog,
              fmt::format("a batch ran for {:.3f} s", to_seconds(host.loop.now() - flight->began)));
}

bool Worker::State::is_answer_to_flight(std::uint64_t ticket, std::string_view name) {
  if (flight && flight->ticket == ticket) return true;
  end_process(ExitReason::Kind::kProtocol, fmt::format("{} for ticket {}, which is not out", name, ticket));
  return false;
}

// On both ledgers or on neither.
Status Worker::State::begin_grant(Bytes grant) {
  if (!device) return lease->begin(grant);
  TONNAGE_TRY(device->lease().begin(grant));
  Status on_host = lease->begin(Bytes());
  if (!on_host.is_ok()) device->cancel();
  return on_host;
}

void Worker::State::close_grant(Bytes peak, Bytes live_now, std::optional<Bytes> reserved) {
  live = live_now;
  // What a worker says about itself may lower nothing: a peak above the grant is not believed.
  Bytes believed = std::min(peak, flight->grant);
  Bytes kept = saturating_sub(live, live_baseline);
  if (device) {
    device->end(std::exchange(believed, Bytes()), std::exchange(kept, Bytes()), reserved);
  }
  const bool is_fresh = host.loop.now() - read_at < kReadingIsFresh;
  if ((!flight->needs_reading && is_fresh) || !read_memory()) {
    lease->end_unread(believed);
  } else {
    const Bytes others = reading.file + reading.shared;
    lease->end(reading.anonymous, believed,
               peak_is_known ? saturating_sub(reading.resident_peak, others) : Bytes());
  }
  lease->keep(kept);
}

void Worker::State::finish(RunOutcome outcome) {
  auto done = std::move(flight->done);
  flight.reset();
  watchdog_at = kNever;
  if (state == WorkerState::kBusy) state = is_stopping ? WorkerState::kStopped : WorkerState::kReady;
  if (std::exchange(wants_trim, false)) trim();
  ran_since_stats = true;
  if (wants_stats) ask_stats();
  const std::weak_ptr<bool> guard = alive;
  done(std::move(outcome));
  if (!guard.expired()) announce();
}

void Worker::State::on_done(std::uint64_t ticket, wire::Done message) {
  if (!is_answer_to_flight(ticket, "done")) return;
  auto region = segments->copy_outputs(reach_of(message.outputs));
  if (!region) {
    flight->failure = RunFailed{RunFailure::kBadOutput, region.status().detail(), {}, {}};
    return end_process(ExitReason::Kind::kProtocol, region.status().to_string());
  }
  close_grant(message.peak, message.live, message.resident);
  watch_retention();
  RunDone done{std::move(message.outputs), *region, message.peak, message.live, message.execution, {}};
  done.round_trip = host.loop.now() - flight->began;
  finish(std::move(done));
}

void Worker::State::on_error(std::uint64_t ticket, wire::Error message) {
  if (!is_answer_to_flight(ticket, "error")) return;
  close_grant(message.peak, message.live, std::nullopt);
  if (message.kind == wire::ErrorKind::kStickyDevice) {
    flight->failure =
        RunFailed{RunFailure::kStickyDevice, std::move(message.text), message.peak, message.needed};
    return end_process(ExitReason::Kind::kStopped, "its device is broken");
  }
  finish(RunFailed{failure_of(message.kind), std::move(message.text), message.peak, message.needed});
}

void Worker::State::on_need(std::uint64_t ticket, const wire::Need& need) {
  if (!is_answer_to_flight(ticket, "need")) return;
  const Bytes present = segments->output().size();
  if (std::exchange(flight->has_asked, true) || need.output_bytes <= present) {
    return end_process(ExitReason::Kind::kProtocol, "it asked for an output region that it has, or twice");
  }
  const Bytes most = std::max(kRegionFloor, options.output_bytes * kRegionGrowth);
  Status sent;
  if (need.output_bytes <= most && segments->replace_output(options.name, need.output_bytes).is_ok()) {
    const int fd = segments->output().fd();
    sent = process->send({ticket, wire::Region{segments->output().size().count()}}, {&fd, 1});
  } else {
    host.log.warn("worker_outputs_discarded",
                  {{"worker", options.name}, {"needed_bytes", need.output_bytes.count()}});
    sent = process->send({ticket, wire::Discard{}}, {});
  }
  if (!sent.is_ok()) end_process(ExitReason::Kind::kProtocol, "it takes no messages: " + sent.to_string());
}

void Worker::State::trim() {
  if (!lease || ending || is_stopping || trim_asked) return;
  // A worker in the middle of a batch may wait for a region, and takes nothing else then.
  wants_trim = flight.has_value();
  if (wants_trim) return;
  const Status sent = process->send({0, wire::Trim{}}, {});
  if (sent.is_ok()) trim_asked = host.loop.now();
}

void Worker::State::on_trimmed(const wire::Trimmed& trimmed) {
  if (!trim_asked) return end_process(ExitReason::Kind::kProtocol, "trimmed without having been asked");
  trim_asked.reset();
  live = trimmed.live;
  const Bytes kept = saturating_sub(live, live_baseline);
  if (device) {
    device->trimmed(process->pid(), kept, trimmed.resident);
  } else {
    lease->keep(kept);
  }
  if (!read_memory()) return;
  lease->settle(reading.anonymous);
  peak_is_known = process->reset_resident_peak().is_ok();
}

}  // namespace tonnage::supervisor
