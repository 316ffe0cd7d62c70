// SPDX-License-Identifier: Apache-2.0
// Rotator: a standby starts, is checked and takes the place of a worker, which then ends.
//
// Promises:
//  1. At most one rotation of the server at a time; all of the standby's charge is taken before there
//     is a process.
//  2. Workers change place between two batches only: no row is lost, and none is run twice.
//  3. A standby that cannot be loaded or fails its check leaves everything as it was.
//  4. rotate() is answered exactly once, when all workers of the model were replaced or one could not be.
//  5. A refusal is said once in log and metric, until its cause was gone for a while.
// Does not: decide (rotation/policy.h), move rows.
// Threads: the loop. Owns: the standby, and the old worker until its process is gone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/loop.h"
#include "memory/budget.h"
#include "pipeline/rotation/policy.h"
#include "pipeline/rotation/standby_check.h"
#include "pipeline/served_model.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace tonnage::pipeline {

struct RotationReport {
  std::size_t workers = 0;  // replaced
  Bytes given_back;         // to the ledger, all of them together
};

// What a worker that is no longer needed gets to end by itself.
inline constexpr Duration kStopGrace = seconds(2);

class Rotator {
 public:
  struct Host {
    Loop& loop;
    telemetry::Log& log;
    telemetry::Registry* metrics;
    // Where the model's tensors are charged.
    std::function<memory::Account&(const ServedModel&)> ledger;
    // The accounts of a worker that is gone.
    std::function<void(const ServedModel&, const std::string&)> forget_worker;
    // For a worker of this seat whose name is not the present one's.
    std::function<supervisor::WorkerOptions(const ServedModel&, std::size_t)> standby_options;
    std::function<std::unique_ptr<supervisor::Worker>(ServedModel&, supervisor::WorkerOptions)> make_worker;
    std::function<std::vector<ServedModel*>()> models;
    std::function<Bytes(const ServedModel&)> returnable;
    std::function<void()> make_room;
    std::function<void()> drive;  // advance() soon, in a turn of its own
  };

  explicit Rotator(Host host) : host_(std::move(host)) {}
  ~Rotator();
  Rotator(const Rotator&) = delete;
  Rotator& operator=(const Rotator&) = delete;

  // An operator's command. Error: not_ready, already_rotating, over_budget, check_failed, load_failed …
  void rotate(ServedModel& model, Completion<RotationReport> done);
  // Asks the policy about every worker; again each second while there is something to watch.
  void look();
  // Goes as far as it can now. Not inside a callback of a worker.
  void advance();
  // The model goes: its rotation ends as soon as it can, its command is answered.
  void abandon(const ServedModel& model);
  void stop();

  bool is_running() const { return running_.has_value(); }
  bool holds(const ServedModel& model) const { return running_ && running_->model == &model; }
  // What comes back to the model's ledger when the rotation is over.
  Bytes held(const ServedModel& model) const;

 private:
  enum class Phase : std::uint8_t { kLoading, kChecking, kReady, kDraining, kEnding, kReloading };

  struct Running {
    ServedModel* model = nullptr;
    std::size_t seat = 0;
    RotationReason reason = RotationReason::kOperator;
    bool drops = false;  // the old worker ends before the new one starts
    Phase phase = Phase::kLoading;
    TimePoint began{};
    Duration load_time{};
    memory::Charge room;  // for the first shape of the check, until that begins
    Bytes before;         // charged for the old worker when it was replaced
    Status failure;
    std::unique_ptr<StandbyCheck> check;  // outlives the worker it runs on
    std::shared_ptr<std::optional<Status>> checked;
    std::unique_ptr<supervisor::Worker> standby;
    std::unique_ptr<supervisor::Worker> retiring;

    WorkerSlot& slot() const { return model->workers[seat]; }
  };
  struct Ask {
    std::size_t left = 0;
    RotationReport report;
    Completion<RotationReport> done;
  };

  // What a reason is found in; what a standby would take is asked for where there is one.
  static RotationState state_of(const WorkerSlot& slot, TimePoint now);
  void add_memory(RotationState& state, const ServedModel& model, const WorkerSlot& slot,
                  const supervisor::WorkerOptions& standby) const;
  // False: there is nothing to watch.
  bool look_at(ServedModel& model, std::size_t seat, TimePoint now);
  void begin(ServedModel& model, std::size_t seat, const RotationDecision& decision,
             supervisor::WorkerOptions standby);
  void refuse(ServedModel& model, std::size_t seat, const RotationDecision& decision, Bytes charge);
  bool step();
  bool step_loading();
  bool step_reloading();
  void take_over();
  void fail(Status why);
  void retire(std::unique_ptr<supervisor::Worker> worker, Duration grace);
  void retired();
  void finish();
  void settle_ask(ServedModel& model, std::size_t seat, const Status& failure, Bytes given_back);
  void count(const ServedModel& model, RotationReason reason, std::string_view result) const;

  Host host_;
  std::optional<Running> running_;
  std::map<std::string, Ask, std::less<>> asks_;  // by model
  std::uint32_t failures_ = 0;                    // in a row
  TimePoint not_before_{};
  bool is_stopped_ = false;
  Loop::Timer next_look_;
};

}  // namespace tonnage::pipeline
