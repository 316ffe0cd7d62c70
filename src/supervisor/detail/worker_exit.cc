// SPDX-License-Identifier: Apache-2.0
// The end of a process, whoever wanted it.
#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "supervisor/detail/worker_state.h"

namespace tonnage::supervisor {
namespace {

RunFailure failure_of(ExitReason::Kind kind) {
  switch (kind) {
    // It had more than it was promised, or it would not have been the one: the cost model must know.
    case ExitReason::Kind::kMemoryLimit: return RunFailure::kOverGrant;
    case ExitReason::Kind::kWatchdog: return RunFailure::kWatchdog;
    default: return RunFailure::kDied;
  }
}

}  // namespace

void Worker::State::end_process(ExitReason::Kind kind, std::string why) {
  if (!process || ending) return;
  host.log.warn("worker_killed", {{"worker", options.name}, {"why", why}});
  ending = Ending{kind, std::move(why)};
  state = is_stopping ? WorkerState::kStopped : WorkerState::kWaitingToStart;
  process->kill();
  announce();
}

RunFailed Worker::State::lost(const ExitReason& reason) {
  if (flight->failure) return std::move(*flight->failure);
  std::string detail = reason.to_string();
  if (ending) detail += ": " + ending->why;
  return {failure_of(reason.kind), std::move(detail), {}, {}};
}

void Worker::State::give_back() {
  lease.reset();
  retention.reset();
  base.release();
  weights.release();
  loading.release();
  if (device) device->give_back();
  segments.reset();
  data_limit = Bytes();
  live = Bytes();
  reading = {};
  wants_trim = false;
  wants_stats = false;
  ran_since_stats = false;
  resident_when_asked.reset();
  accounts.reset();
  trim_asked.reset();
  load_timer.reset();
  watchdog_timer.reset();
  second_timer.reset();
  stop_timer.reset();
}

void Worker::State::on_exit(ExitReason reason) {
  // Our own kill is named by its purpose; a process that ended by itself first keeps its own reason.
  const bool was_killed = reason.kind == ExitReason::Kind::kSignal && reason.code == SIGKILL;
  if (ending && was_killed) reason.kind = ending->kind;
  if (is_stopping && reason.kind == ExitReason::Kind::kStatus) reason.kind = ExitReason::Kind::kStopped;
  const std::string text = reason.to_string() + (ending ? ": " + ending->why : "");
  host.log.info("worker_exited", {{"worker", options.name}, {"why", text}});

  std::optional<RunFailed> failed;
  UniqueFunction<void(RunOutcome)> done;
  if (flight) {
    failed = lost(reason);
    done = std::move(flight->done);
    flight.reset();
  }
  const bool load_failed = last_error.reason() == "load_failed" && ending.has_value();
  process.reset();
  ending.reset();
  give_back();

  // All is settled before anybody is told: the answer may forgive this death or look at the state.
  const AfterExit then = std::exchange(after_exit, AfterExit::kCountDeath);
  if (is_stopping) {
    state = WorkerState::kStopped;
    last_error = Status(Code::kUnavailable, "stopped", "the worker was stopped");
  } else if (then == AfterExit::kWaitForMemory) {
    state = WorkerState::kWaitingToStart;
    waits_for_memory = true;
    start_timer = host.loop.call_after(seconds(1), [this] { try_start(); });
  } else {
    ++deaths;
    if (!load_failed) last_error = Status(Code::kUnavailable, "worker_lost", text);
    restarts.on_death(host.loop.now());
    schedule_start();
  }
  // A stopped worker was announced when it was told to stop; that it is gone is news again.
  const bool is_news = state == announced && state != WorkerState::kWaitingToStart;
  const std::weak_ptr<bool> guard = alive;
  if (done) done(std::move(*failed));
  if (guard.expired()) return;
  if (is_news && state == announced && on_change) return on_change();
  announce();
}

void Worker::State::stop(Duration grace) {
  if (is_stopping) return;
  is_stopping = true;
  start_timer.reset();
  waits_for_memory = false;
  if (state != WorkerState::kBusy) state = WorkerState::kStopped;
  if (process && !ending) {
    if (!process->send({0, wire::Stop{}}, {}).is_ok() || grace <= Duration()) {
      end_process(ExitReason::Kind::kStopped, "stopped without grace");
      return;
    }
    stop_timer = host.loop.call_after(
        grace, [this] { end_process(ExitReason::Kind::kStopped, "it did not stop in time"); });
  }
  announce();
}

void Worker::State::forgive_last_death() {
  restarts.forgive_last();
  // A start that waits for its backoff waits shorter now; one that waits for memory still does.
  if (start_timer && !waits_for_memory) {
    schedule_start();
    announce();
  }
}

}  // namespace tonnage::supervisor
