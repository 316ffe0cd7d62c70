// SPDX-License-Identifier: Apache-2.0
// ServedModel: one model version with everything that belongs to it: workers, lanes, retries, cost
// model, ladder. A record with the rules that need no other model; the pipeline moves the rows.
//
// Threads: the loop. Owns: its workers and lanes.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost/cost_model.h"
#include "lane/lane.h"
#include "memory/device_ledger.h"
#include "model/spec.h"
#include "pipeline/batch_metrics.h"
#include "pipeline/ladder.h"
#include "pipeline/measure/warm_up.h"
#include "pipeline/poison.h"
#include "pipeline/recovery.h"
#include "pipeline/running_stats.h"
#include "planner/plan.h"
#include "supervisor/worker.h"

namespace tonnage::pipeline {

enum class ModelPhase : std::uint8_t { kLoading, kWarmingUp, kReady, kFailed };

// The batch that a worker is executing.
struct InFlight {
  Group group;
  std::uint32_t lane_number = 0;  // whom the arbiter charged
  cost::Shape shape;
  model::RowSize padded;  // what its rows were padded to
  Bytes grant;
  Duration predicted{};
  TimePoint started{};
  bool beyond_prediction = false;  // it has all there is, and less than it is predicted to need
};

// What the rotation policy remembers of a seat between two looks.
struct SeatRotation {
  bool is_asked = false;  // by an operator, and not done yet
  bool was_refused = false;
  TimePoint short_since = kNever;  // a standby did not fit
};

// Which rows a worker takes.
enum class Serves : std::uint8_t { kAll, kShort, kLong };

// A seat that one worker after another takes; `in_flight` is the present one's.
struct WorkerSlot {
  std::unique_ptr<supervisor::Worker> worker;
  Serves serves = Serves::kAll;
  std::uint32_t tokens = 0;  // of compute, while it runs a batch
  // Smoothed actual ÷ predicted time of a worker for long rows: its threads and priority are not those that
  // the cost model knows.
  double pace = 1.0;
  Duration paced(Duration predicted) const { return from_seconds(to_seconds(predicted) * pace); }
  void learn_pace(Duration predicted, Duration took);
  std::optional<InFlight> in_flight;
  TimePoint starting_since = kNever;
  TimePoint ready_since = kNever;
  bool is_held = false;  // gets no further batch
  SeatRotation rotation{};
  Bytes grant_when_ready;  // what a batch could have when it last became ready

  bool is_free() const { return worker->is_idle() && !in_flight && !is_held; }
};

// One class of rows (short or long) with the working memory to plan it.
struct LaneSlot {
  explicit LaneSlot(const lane::LaneLimits& limits) : lane(limits) {}
  lane::Lane lane;
  std::vector<planner::PlannerRow> view;
  planner::PlanScratch scratch;
  planner::Plan plan;        // of this turn; its spans lie in the scratch
  std::uint32_t number = 0;  // the arbiter's
  bool is_long = false;
  TimePoint waits_since = kNever;  // no row of it fits into the memory there is
};

struct ServedModel {
  explicit ServedModel(model::ModelSpec loaded_spec);

  model::ModelHandle spec;
  memory::DeviceLedger* device = nullptr;  // where its tensors lie; null: in the host's memory
  ModelPhase phase = ModelPhase::kLoading;
  Status trouble;  // why it is not ready
  std::string fingerprint;
  std::optional<cost::CostModel> cost;
  std::unique_ptr<WarmUp> warm_up;
  // What a warm-up had learned when its worker was lost, of the model with that fingerprint.
  std::optional<std::pair<std::string, cost::Profiler>> half_learned;
  std::uint64_t warm_ups = 0;  // begun
  Loop::Timer warm_up_again;
  TimePoint resting_since = kNever;  // the ladder stands on its last step
  bool is_skipped = false;           // this turn: the ledger refused its batch after all
  std::vector<WorkerSlot> workers;
  std::deque<LaneSlot> lanes;            // short, and long where the model has a long class
  std::deque<Group> retries;             // before anything that waits in a lane
  TimePoint retry_waits_since = kNever;  // the first of them does not fit into the memory there is
  Ladder ladder;
  model::Enforce enforce;  // of the spec, until an operator says otherwise
  Observed observed;
  Status fallback_trouble;  // why the fallback that the spec names is not used
  PoisonMemory poison;
  RunningStats stats;
  std::unique_ptr<BatchMetrics> metrics;  // none where nobody reads them
  TimePoint ready_since = kNever;
  std::uint64_t retired_deaths = 0;  // of workers that were replaced
  bool is_leaving = false;           // it is being removed: finishes what waits, takes nothing new
  TimePoint leave_by = kNever;
  bool workers_stopped = false;
  std::vector<UniqueFunction<void()>> when_gone;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // posted calls hold it weakly
  Duration cold_start{};                                       // spawn to ready, of the last start
  // Per column: predicted seconds of one row in a good batch. Without drift, as everything that waits:
  // what the machine does now is put on top where it is asked.
  std::vector<Duration> row_work;

  // By itself; whether its requests are answered is Pipeline::is_ready.
  bool is_ready() const;
  // On its way to it, and nothing is wrong so far.
  bool is_coming() const;
  std::string why_not_ready() const;
  // Its trouble is a warm-up that lost its worker, and the next one goes on with what was learned.
  bool warms_up_again() const { return half_learned && trouble.reason() == "warm_up_failed"; }
  // Rows are still taken while a worker is being replaced: it will be back.
  bool accepts() const;
  LaneSlot& lane_for(std::uint32_t length);
  WorkerSlot* idle_worker(bool for_long);
  // Of those that could begin `grant` now, the one whose lease grows least.
  WorkerSlot* idle_worker_for(Bytes grant, bool for_long);
  std::uint64_t deaths() const;
  Bytes largest_grant(bool for_long) const;  // of the idle workers now
  // The two classes have workers of their own.
  bool is_split() const { return spec->long_executor.count > 0 && lanes.size() > 1; }
  // What a row of the class waits for: all that waits, or its class alone where that has its own workers.
  Duration work_ahead(bool for_long) const;
  Duration waiting_work() const;
  // Until a worker is free, at the pace of the table, as all work here.
  Duration residual(TimePoint now, bool for_long) const;
  double drift() const { return cost ? cost->drift() : 1.0; }
  // Workers that take rows of the class, and their mean pace.
  std::uint32_t workers_for(bool for_long) const;
  double pace(bool for_long) const;
  Duration work_of_row(std::uint32_t length) const;
  void refresh_row_work();
  // In predicted time, so that what really passes stays inside the bound of a batch.
  Duration batch_bound(bool is_long) const;
  // The bound of the lanes is of seconds that will really pass.
  void tighten_lanes();
  std::size_t waiting_rows() const;
  std::vector<lane::QueuedRow> waiting();  // those rows
  bool has_work() const;
  // Compute tokens that all its workers hold at once; a worker takes at most all `cores`.
  std::uint32_t tokens(std::uint32_t cores) const;
  void forget_rows(request::RequestId id);
  planner::Plan plan(LaneSlot& lane, TimePoint now);
  Duration watchdog(Duration predicted, const WorkerSlot& slot) const;
};

}  // namespace tonnage::pipeline
