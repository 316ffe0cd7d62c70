// SPDX-License-Identifier: Apache-2.0
// WarmUp: profiles a model on a ready worker, shape by shape, and hands over its cost model.
//
// Promises: done is called once, on the loop; a worker that is lost meanwhile, or a model that fails
// on every shape, is an error with its reason. Shapes that the memory refuses are left out, not run.
// What was learned before a worker was lost is not learned again: take_rest() and go_on_with().
// Threads: the loop. Owns: nothing but its own step; the worker must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/function.h"
#include "base/loop.h"
#include "base/status.h"
#include "cost/profiler.h"
#include "model/spec.h"
#include "supervisor/worker.h"

namespace tonnage::pipeline {

class WarmUp {
 public:
  using Done = UniqueFunction<void(Result<cost::CostModel>)>;

  // `attempt`: another one profiles with other values, so that one bad value cannot stop it for ever.
  WarmUp(Loop& loop, model::ModelHandle spec, supervisor::Worker& worker, std::uint64_t attempt, Done done);
  // Before start(): what another one left.
  void go_on_with(cost::Profiler rest);
  void start();
  // After an error: what was measured, where another worker can go on with it.
  std::optional<cost::Profiler> take_rest();
  bool runs_on(const supervisor::Worker& worker) const { return &worker == &worker_; }
  double progress() const { return profiler_.progress(); }

 private:
  void step();
  // `shape`: what was run, which the sizes of a model may not let be the step's own.
  void finished(const cost::ProfileStep& step, cost::Shape shape, const supervisor::RunOutcome& outcome);
  void finish();
  void stop_short(Status why);

  Loop& loop_;
  model::ModelHandle spec_;
  supervisor::Worker& worker_;
  std::uint64_t first_seed_;
  Done done_;
  cost::Profiler profiler_;
  TimePoint started_{};
  bool leaves_rest_ = false;
  bool has_run_ = false;  // since the last step
  std::string last_failure_;
  Loop::Timer next_step_;
};

cost::CostOptions cost_options(const model::ModelSpec& spec);

}  // namespace tonnage::pipeline
