// SPDX-License-Identifier: Apache-2.0
// StandbyCheck: before a standby takes over it runs three shapes whose cost is known.
//
// Promises: done is called once, on the loop, not inside start(). A shape that the model itself fails on,
// or that memory refuses now, proves nothing; one that goes above its known grant, a lost worker, or no
// shape that could be run, is an error.
// Threads: the loop. The worker must outlive it, or be destroyed with its batch in flight before it.
#pragma once

#include <vector>

#include "base/function.h"
#include "base/loop.h"
#include "base/status.h"
#include "cost/cost_model.h"
#include "model/spec.h"
#include "supervisor/worker.h"

namespace tonnage::pipeline {

struct CheckShape {
  cost::Shape shape;
  Bytes grant;
};

// One row at both ends of the length, and a batch that takes at most half of `free`. Pure.
std::vector<CheckShape> check_shapes(const model::ModelSpec& spec, const cost::CostModel& cost, Bytes free);

// What the ledger must have free for the first of them.
Bytes check_room(const model::ModelSpec& spec, const cost::CostModel& cost);

class StandbyCheck {
 public:
  using Done = UniqueFunction<void(Status)>;

  StandbyCheck(Loop& loop, model::ModelHandle spec, supervisor::Worker& standby,
               std::vector<CheckShape> shapes, Done done);
  void start() {
    next_step_ = loop_.call_at(loop_.now(), [this] { step(); });
  }

 private:
  void step();
  void finished(const supervisor::RunOutcome& outcome);
  void finish(Status status);

  Loop& loop_;
  model::ModelHandle spec_;
  supervisor::Worker& worker_;
  std::vector<CheckShape> shapes_;
  Done done_;
  std::size_t next_ = 0;
  std::size_t good_ = 0;
  Loop::Timer next_step_;
};

}  // namespace tonnage::pipeline
