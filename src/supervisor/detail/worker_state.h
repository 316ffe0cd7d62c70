// SPDX-License-Identifier: Apache-2.0
// The state machine behind worker.h. Its parts each have a file: a process's beginning (worker_start.cc),
// its batches (worker_run.cc), its memory (worker_memory.cc) and its end (worker_exit.cc).
//
//   kWaitingToStart -> kStarting -> kLoading -> kReady <-> kBusy
//          ^                           |          |         |
//          +------- ending, exit ------+----------+---------+     kBroken: five deaths; then a probe
//
// Between end_process() and the exit the worker counts as kWaitingToStart: nothing runs on it, and
// what it still sends is not looked at.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "supervisor/detail/device_share.h"
#include "supervisor/detail/restart_policy.h"
#include "supervisor/detail/worker_segments.h"
#include "supervisor/worker.h"

namespace tonnage::supervisor {

struct Worker::State {
  // A batch on its way.
  struct Flight {
    std::uint64_t ticket = 0;
    UniqueFunction<void(RunOutcome)> done;
    TimePoint began;
    Bytes grant;
    std::uint32_t rows = 0;
    std::uint32_t length = 0;
    bool needs_reading = true;
    bool has_asked = false;              // for a larger region; once per batch
    std::optional<RunFailed> failure{};  // how it is answered at the exit, where that is not by the exit
  };
  struct Ending {
    ExitReason::Kind kind;
    std::string why;
  };
  enum class AfterExit { kCountDeath, kWaitForMemory };

  State(WorkerOptions worker_options, Host worker_host, std::function<void()> changed);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Beginning.
  void try_start();
  void schedule_start();
  void on_loaded(const wire::Loaded& loaded_message, std::vector<UniqueFd> fds);
  void on_failed(const wire::Failed& failed);

  // Batches.
  Status run(RunCommand command, UniqueFunction<void(RunOutcome)> done);
  void on_done(std::uint64_t ticket, wire::Done message);
  void on_error(std::uint64_t ticket, wire::Error message);
  void on_need(std::uint64_t ticket, const wire::Need& need);
  void on_trimmed(const wire::Trimmed& trimmed);
  void trim();

  // Memory.
  std::optional<memory::ProcessReading> read_memory();
  void ask_stats();
  void on_stats(const wire::Stats& stats);
  memory::RetentionForecast retention_forecast() const;
  // The one whose grants batches have: of the device, of the host without one; null before it is ready.
  const memory::Lease* granting() const;

  // End.
  void end_process(ExitReason::Kind kind, std::string why);
  void on_exit(ExitReason reason);
  void stop(Duration grace);
  void forgive_last_death();

  void on_packet(wire::Packet packet);
  // Runs on_change when the state is not the last one announced. The last act of a turn.
  void announce();

  WorkerOptions options;
  Host host;
  std::function<void()> on_change;
  memory::Account& base_account;
  memory::Account& weights_account;
  memory::Account& loading_account;
  memory::Account& lease_account;

  WorkerState state = WorkerState::kWaitingToStart;
  WorkerState announced = WorkerState::kWaitingToStart;
  bool is_stopping = false;
  bool waits_for_memory = false;
  AfterExit after_exit = AfterExit::kCountDeath;
  Status last_error;
  std::uint64_t deaths = 0;
  detail::RestartPolicy restarts;
  std::optional<wire::LoadedDoc> loaded;
  Bytes known_need;  // base + weights of the last process that was ready

  // Of the process; gone with it.
  std::unique_ptr<ProcessPort> process;
  std::optional<Ending> ending;
  std::optional<detail::WorkerSegments> segments;
  memory::Charge base;
  memory::Charge weights;
  memory::Charge loading;
  std::optional<memory::Lease> lease;         // of the host
  std::optional<detail::DeviceShare> device;  // of a model on one; the share lasts, its charges go
  std::optional<memory::Retention> retention;
  bool peak_is_known = false;  // VmHWM since ready or the last trim
  Bytes data_limit;            // as set; only ever raised
  Bytes told_weights;
  Bytes live_baseline;
  Bytes live;
  memory::ProcessReading reading{};
  TimePoint read_at{};
  bool wants_trim = false;   // once the batch is done
  bool wants_stats = false;  // likewise
  bool ran_since_stats = false;
  std::optional<Bytes> resident_when_asked;  // for stats
  std::optional<memory::WorkerAccounts> accounts;
  std::optional<TimePoint> trim_asked;

  std::uint64_t next_ticket = 1;
  std::optional<Flight> flight;
  TimePoint watchdog_at = kNever;
  TimePoint watchdog_armed_for = kNever;

  Loop::Timer start_timer;  // backoff, waiting for memory
  Loop::Timer load_timer;
  Loop::Timer watchdog_timer;
  Loop::Timer second_timer;
  Loop::Timer stop_timer;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

 private:
  Status reserve();
  Status launch();
  Status settle_base(const wire::Loaded& loaded_message);
  Status settle_device(const wire::Loaded& loaded_message, const wire::LoadedDoc& doc);
  void become_ready(const wire::Loaded& loaded_message, wire::LoadedDoc doc);
  void each_second();
  void arm_watchdog();
  void on_watchdog();
  bool is_answer_to_flight(std::uint64_t ticket, std::string_view name);
  Status begin_grant(Bytes grant);
  // `reserved`: as told, where the model is on a device.
  void close_grant(Bytes peak, Bytes live_now, std::optional<Bytes> reserved);
  void watch_retention();
  void finish(RunOutcome outcome);
  void give_back();
  RunFailed lost(const ExitReason& reason);
};

}  // namespace tonnage::supervisor
