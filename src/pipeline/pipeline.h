// SPDX-License-Identifier: Apache-2.0
// Pipeline: where lanes, planner, batches and workers meet. Rows come in, answers go out.
//
// Promises:
//  1. Every submitted request is answered exactly once: outputs, a typed refusal, or its deadline.
//  2. cancel() frees the request's rows and envelope at once.
//  3. Workers pull: a batch is planned when a worker is idle, never ahead of one; one batch per worker.
//  4. A failed batch costs its guilty rows only (pipeline/recovery.h); memory trouble moves the ladder
//     (pipeline/ladder.h); the cost model learns from each batch.
//  5. A worker can be replaced while the model serves (pipeline/rotation/rotator.h). A model that is
//     removed finishes what it took, within a bound, and leaves no process and no account behind.
// Does not: decode, tokenise or encode (codec, text, api).
// Threads: the loop. Owns: models, workers, open requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/admission.h"
#include "base/loop.h"
#include "base/random.h"
#include "base/status.h"
#include "cost/profile_store.h"
#include "memory/budget.h"
#include "memory/device_ledger.h"
#include "memory/grant_queue.h"
#include "model/spec.h"
#include "pipeline/open_requests.h"
#include "pipeline/rotation/rotator.h"
#include "pipeline/served_model.h"
#include "planner/arbiter.h"
#include "supervisor/process.h"
#include "telemetry/log.h"

namespace tonnage::pipeline {

struct PipelineOptions {
  std::uint32_t compute_tokens = 1;  // cores
  Bytes ingress_limit = mib(32);     // what one request may hold in the front at most
  std::uint64_t seed = 1;            // of Retry-After's jitter and of warm-up values
  // How to start a worker of this model.
  std::function<supervisor::LaunchCommand(const model::ModelSpec&)> launch;
};

class Pipeline {
 public:
  struct Host {
    Loop& loop;
    supervisor::ProcessFactory& processes;
    memory::Budget& budget;
    telemetry::Log& log;
    cost::ProfileStorePort* profiles = nullptr;  // nothing is remembered without one
    telemetry::Registry* metrics = nullptr;
    memory::Devices* devices = nullptr;  // models on a device are not served without
  };

  Pipeline(PipelineOptions options, Host host);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Starts the model's workers; it becomes ready (or failed) later. Error: already_exists, those of
  // memory/device_ledger.h where its device is not there.
  Status add_model(model::ModelSpec spec);
  // Takes no more rows; what it has is finished, at most until `drain` is over, then answered
  // unavailable/unloading. `gone` runs when nothing is left of it. Error: not_found/unknown_model.
  Status remove_model(std::string_view name, Duration drain, UniqueFunction<void()> gone);
  // Replaces the model's workers, one after the other. Error: not_found, and those of rotator.h.
  void rotate(std::string_view model, Completion<RotationReport> done);
  // Until it is said again, or the model is added anew. Error: not_found/unknown_model.
  Status set_enforce(std::string_view model, model::Enforce enforce);
  // Admission and lane of the model, or of its fallback while the model rests. A refusal is answered inside
  // the call; then the id finds nothing.
  request::RequestId submit(request::Request request);
  void cancel(request::RequestId id);
  // Answers everything that is open and stops the workers at once.
  void stop();

  const ServedModel* find(std::string_view model) const;
  std::vector<const ServedModel*> models() const;
  // It answers: itself, or by its fallback.
  bool is_ready(const ServedModel& model) const;
  const memory::Devices* devices() const { return host_.devices; }
  std::size_t open_requests() const { return open_.size(); }
  // Runs after a model became ready or failed, or a worker came or went.
  void on_model_change(std::function<void()> fn) { on_model_change_ = std::move(fn); }

 private:
  // A batch that could run now: of a lane, or (lane == nullptr) the model's first retry group.
  struct Candidate {
    ServedModel* model = nullptr;
    LaneSlot* lane = nullptr;
    planner::Plan plan{};
    WorkerSlot* worker = nullptr;
    std::uint32_t number = 0;  // the arbiter's, of the lane that contends
    bool is_long = false;
    bool beyond_prediction = false;
  };

  void schedule_drive();
  void drive();
  void collect(ServedModel& model, TimePoint now);
  void collect_retry(ServedModel& model, TimePoint now);
  void collect_lanes(ServedModel& model, TimePoint now);
  // False: rows were dropped, and plans made before are void.
  bool plan_lanes(ServedModel& model, TimePoint now);
  void offer_lane(ServedModel& model, LaneSlot& slot, TimePoint now);
  void look_after_waiting(ServedModel& model, LaneSlot& slot, TimePoint now);
  void offer(Candidate candidate);
  void share_weights();
  static void collect_waiting(ServedModel& model, std::vector<memory::WaitingGrant>& waiting);
  void protect_waiting(TimePoint now);
  // Which candidates may begin, of those that take from this ledger.
  std::vector<const Candidate*> may_begin(memory::Account& ledger, TimePoint now);
  // False: memory was refused after all; try again later.
  bool dispatch(const Candidate& candidate);
  bool run_group(const Candidate& candidate, Group group);
  void arm_wake(TimePoint now);
  void finished(ServedModel& model, WorkerSlot& slot, supervisor::RunOutcome outcome);
  void deliver(ServedModel& model, const WorkerSlot& slot, const InFlight& batch,
               const supervisor::RunDone& done);
  void failed(ServedModel& model, WorkerSlot& slot, InFlight batch, const supervisor::RunFailed& failure);
  void carry_out(ServedModel& model, Recovery recovery, const std::string& detail);
  void forget_rows(request::RequestId id, const request::Request& request);

  // Fallbacks and requests beyond prediction (degrade.cc).
  Status check_fallbacks(const model::ModelSpec& added);
  // Who runs the model's requests now: itself, or the first of its fallbacks that can; null: nobody.
  ServedModel* runner_of(const ServedModel& model) const;
  void divert_waiting(ServedModel& model);
  void divert(request::RequestId id, std::vector<lane::QueuedRow> rows, ServedModel& runner);
  void release_observed(ServedModel& model);
  void observe_refusal(ServedModel& model, request::Request& request, const Status& refusal);

  // Answers every request of the model that has rows waiting.
  void fail_waiting(ServedModel& model, const Status& status);
  void start_workers(ServedModel& model);
  supervisor::WorkerOptions worker_options(const ServedModel& model, std::size_t seat) const;
  supervisor::WorkerOptions standby_options(const ServedModel& model, std::size_t seat) const;
  std::unique_ptr<supervisor::Worker> make_worker(ServedModel& model, supervisor::WorkerOptions options);
  Rotator::Host rotator_host();
  void worker_changed(ServedModel& model, const std::string& worker);
  void worker_lost(ServedModel& model, const supervisor::Worker& worker);
  void look_after_leaving(TimePoint now);
  // True: nothing of it is left.
  bool let_go(ServedModel& model, TimePoint now);
  void forget(const std::string& name);
  // Its accounts, once nothing is charged to them.
  void forget_worker(memory::DeviceLedger* device, const std::string& worker);
  void begin_warm_up(ServedModel& model, supervisor::Worker& worker);
  void warmed_up(ServedModel& model, Result<cost::CostModel> cost);
  void save_profile(const ServedModel& model);
  // Soon: workers give back what they hold beyond need.
  void make_room();
  void trim_workers();
  void memory_came_back();
  Status admit(ServedModel& model, request::Request& request, TimePoint now);
  admission::Load load_of(ServedModel& model, std::uint32_t length, TimePoint now) const;
  Status enqueue(ServedModel& model, request::RequestId id, const request::Request& request);
  Status find_device(ServedModel& model);
  // Where the model's tensors are charged.
  memory::Account& ledger_of(const ServedModel& model) const;
  std::vector<memory::Account*> ledgers() const;
  Bytes returnable(const ServedModel& model) const;
  // What a batch of the model could have with everything else given back. From `enough` on it may be less.
  Bytes largest_possible_grant(const ServedModel& model, Bytes enough = Bytes::max()) const;
  std::uint32_t free_tokens() const;
  double share_of(const ServedModel& model) const;

  PipelineOptions options_;
  Host host_;
  Random random_;
  std::map<std::string, std::unique_ptr<ServedModel>, std::less<>> models_;
  OpenRequests open_;
  planner::Arbiter arbiter_;
  std::vector<Candidate> candidates_;
  std::vector<planner::Contender> contenders_;
  std::uint32_t next_lane_number_ = 0;
  std::vector<std::uint32_t> free_lane_numbers_;
  TimePoint wake_at_ = kNever;
  Loop::Timer wake_;
  bool drive_scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // posted calls hold it weakly
  TimePoint last_room_making_{};
  Loop::Timer room_making_;
  TimePoint last_start_try_{};
  bool someone_waits_for_memory_ = false;
  bool a_start_waits_for_memory_ = false;
  bool draining_ = false;
  std::function<void()> on_model_change_;
  Rotator rotator_;
};

}  // namespace tonnage::pipeline
