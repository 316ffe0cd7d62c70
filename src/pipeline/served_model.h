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
#include <vector>

#include "cost/cost_model.h"
#include "lane/lane.h"
#include "model/spec.h"
#include "pipeline/batch_metrics.h"
#include "pipeline/ladder.h"
#include "pipeline/poison.h"
#include "pipeline/recovery.h"
#include "pipeline/running_stats.h"
#include "pipeline/warm_up.h"
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
};

// What the rotation policy remembers of a seat between two looks.
struct SeatRotation {
  bool is_asked = false;  // by an operator, and not done yet
  bool was_refused = false;
  TimePoint short_since = kNever;  // a standby did not fit
};

// A seat that one worker after another takes; `in_flight` is the present one's.
struct WorkerSlot {
  std::unique_ptr<supervisor::Worker> worker;
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
  ModelPhase phase = ModelPhase::kLoading;
  Status trouble;  // why it is not ready
  std::string fingerprint;
  std::optional<cost::CostModel> cost;
  std::unique_ptr<WarmUp> warm_up;
  std::uint64_t warm_ups = 0;  // begun
  Loop::Timer warm_up_again;
  TimePoint refusing_since = kNever;  // the ladder stands on its last step
  bool is_skipped = false;            // this turn: the ledger refused its batch after all
  std::vector<WorkerSlot> workers;
  std::deque<LaneSlot> lanes;            // short, and long where the model has a long class
  std::deque<Group> retries;             // before anything that waits in a lane
  TimePoint retry_waits_since = kNever;  // the first of them does not fit into the memory there is
  Ladder ladder;
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
  std::vector<Duration> row_work;  // per column: predicted seconds of one row in a good batch

  bool is_ready() const;
  // Rows are still taken while a worker is being replaced: it will be back.
  bool accepts() const;
  LaneSlot& lane_for(std::uint32_t length);
  WorkerSlot* idle_worker();
  // Of those that could begin `grant` now, the one whose lease grows least.
  WorkerSlot* idle_worker_for(Bytes grant);
  std::uint64_t deaths() const;
  Bytes largest_grant() const;  // of the idle workers now
  Duration work_ahead() const;
  Duration residual(TimePoint now) const;
  Duration work_of_row(std::uint32_t length) const;
  void refresh_row_work();
  std::size_t waiting_rows() const;
  planner::Plan plan(LaneSlot& lane, TimePoint now);
  Duration watchdog(Duration predicted) const;
};

}  // namespace tonnage::pipeline
