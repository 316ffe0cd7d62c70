// SPDX-License-Identifier: Apache-2.0
// Worker: one process that holds one model and executes one batch at a time, kept alive.
//
// Promises:
//  1. run() is answered exactly once: outputs, an error, or that the worker was lost and why. The
//     destructor answers a run in flight kDied, so a Worker goes before what its callbacks use.
//  2. A worker that dies is started again after 0.5 s, doubling to 30 s; five deaths in 60 s open the
//     breaker, which probes every 60 s. Deaths reported by forgive_last_death() (poison rows) do not count.
//  3. A batch longer than its watchdog ends the process; that is not retried by the supervisor.
//  4. Whatever the process sends (wrong slot, answer twice, half a message, a flood) costs at most
//     that process.
//  5. Weights, base, loading and lease are charged before they are used, and given back on exit. Where
//     the budget lacks them, last_error() says how much is missing; it starts when they are free.
//  6. A model on a device has its grants, and an account of each kind, on the device's ledger; on the
//     host's it is charged for what is resident there. A worker that does not say that it is on the device is
//     replaced.
// Threads: the loop. Owns: process, segments, lease.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/loop.h"
#include "base/status.h"
#include "memory/accounts.h"
#include "memory/budget.h"
#include "memory/device.h"
#include "memory/lease.h"
#include "memory/retention.h"
#include "supervisor/process.h"
#include "telemetry/log.h"
#include "wire/load_doc.h"
#include "wire/messages.h"

namespace tonnage::supervisor {

enum class WorkerState : std::uint8_t {
  kWaitingToStart,
  kStarting,
  kLoading,
  kReady,
  kBusy,
  kBroken,
  kStopped
};

struct RunCommand {
  std::uint32_t slot = 0;
  std::uint32_t rows = 0;
  std::uint32_t length = 0;
  Bytes grant{};
  Duration watchdog{};
  std::vector<wire::TensorLayout> inputs{};
};

struct RunDone {
  std::vector<wire::TensorLayout> outputs{};  // inside `region`; type, dims and alignment not yet proven
  ByteView region{};                          // output bytes copied out; valid during the callback only
  Bytes peak{};
  Bytes live{};
  Duration execution{};
  Duration round_trip{};
};

enum class RunFailure : std::uint8_t {
  kOverGrant,  // the allocator refused above the grant, or the kernel killed it for memory
  kPressure,   // the kernel refused memory inside the grant
  kModelError,
  kBadOutput,     // as the worker says, or its layouts lie outside the region (then it is replaced)
  kStickyDevice,  // the worker is being replaced
  kDied,          // signal, exit, kill() or a broken protocol in the middle of the batch
  kWatchdog,
};

struct RunFailed {
  RunFailure failure = RunFailure::kModelError;
  std::string detail{};
  Bytes peak{};
  Bytes needed{};
};

using RunOutcome = std::variant<RunDone, RunFailed>;

struct WorkerOptions {
  std::string name{};  // "reviews/1/0"
  LaunchCommand command{};
  wire::LoadDoc load{};
  Bytes weight_file{};  // for the loading account: × load_factor until loaded
  double load_factor = 2.0;
  // What an earlier process of this model held beside its weights; loading has it too.
  Bytes known_base{};
  Bytes known_device_base{};
  Bytes slot_bytes{};
  Bytes output_bytes{};
  std::uint32_t threads = 1;
  double charged_per_byte = 1.0;  // memory/lease.h: above 1 where not all of its memory is counted
  Duration load_timeout = seconds(600);
};

// Of the ledger of a device.
struct DeviceMemory {
  Bytes base;  // the context, above all
  Bytes weights;
  Bytes lease;
  Bytes use;  // of the process, as last read from the driver or told by it
};

struct WorkerMemory {
  Bytes base;
  Bytes weights;
  Bytes lease;
  Bytes grant;  // where its tensors lie
  Bytes slack;  // the most that batches took on top of their tensors
  Bytes live_baseline;
  Bytes live;
  memory::ProcessReading reading;
  memory::RetentionForecast retention{};  // does the model keep bytes, and when is it at its limit?
  // What it all consists of: since ready, then each second in which it ran something.
  std::optional<memory::WorkerAccounts> accounts{};
  std::optional<DeviceMemory> device{};  // of a model on one

  // Where its tensors lie.
  Bytes when_ready() const { return device ? device->base + device->weights : base + weights; }
  Bytes in_use() const { return device ? device->use : reading.anonymous; }
};

// What the first start of such a worker takes from the ledger before there is a process.
Bytes start_charge(const WorkerOptions& options);
Bytes device_start_charge(const WorkerOptions& options);  // of the device's

class Worker {
 public:
  struct OnDevice {
    std::string name;          // "cuda:0"
    memory::Account& account;  // of this worker, as that of the host
    const memory::DevicePort& driver;
  };
  struct Host {
    Loop& loop;
    ProcessFactory& processes;
    memory::Account& account;         // of this worker: children base, weights, loading, lease
    memory::Account& shared_account;  // segments
    telemetry::Log& log;
    std::optional<OnDevice> device{};  // where its model lies; nothing: in the host's memory
  };

  // `on_change` runs after every change of state, except for the change that run() itself makes. It
  // runs last in its turn: it may call anything here, or destroy the Worker.
  Worker(WorkerOptions options, Host host, std::function<void()> on_change);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  // Stops for good: asks, then kills after `grace`. A batch in flight may still finish in that time;
  // otherwise it is answered kDied.
  void stop(Duration grace);
  // Memory came back (Budget::on_release): a start that waits for it is tried again. It is also tried
  // each second.
  void memory_released();

  WorkerState state() const;
  bool is_idle() const { return state() == WorkerState::kReady; }
  const WorkerOptions& options() const;
  // Valid once it was ready for the first time.
  const std::optional<wire::LoadedDoc>& loaded() const;
  // Why it is not ready, when it is not: the last load failure or exit.
  Status last_error() const;
  // Ends of the process that nobody asked for.
  std::uint64_t deaths() const;
  // False once a stopped worker's process is gone and all its memory given back.
  bool has_process() const;
  pid_t pid() const;  // 0 without a process

  // The slot to gather into; only while idle.
  MutableByteView input_slot(std::uint32_t slot);
  // Grant and lease, here and below: where its tensors lie. Largest grant that could begin now.
  Bytes largest_grant() const;
  Bytes largest_grant_when_trimmed() const;  // at least as much
  // What the lease would have to grow by for this grant; zero where it is free (memory/grant_queue.h).
  Bytes growth_for(Bytes grant) const;
  // Needs is_idle(). Error (nothing was started): overloaded/over_budget.
  Status run(RunCommand command, UniqueFunction<void(RunOutcome)> done);
  // Asks the worker to release caches (after the batch, where one runs), then settles the lease by a
  // new reading.
  void trim();
  bool is_trimming() const;
  // Whether more is in use, by whom ever, than one of its ledgers allows.
  bool is_overdrawn() const;
  void kill(std::string_view why);
  void forgive_last_death();
  WorkerMemory memory() const;
  Bytes lease() const;  // of memory(), alone and cheap
  // What it holds of that ledger now: base, weights, loading, lease and (the host's) segments.
  Bytes charged() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::supervisor
