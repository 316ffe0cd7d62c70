// SPDX-License-Identifier: Apache-2.0
// run_shape: one batch of made-up rows on an idle worker. How warm-up and `tonnage profile` measure.
//
// Precondition: the worker is idle. `done` is called once, on the loop, unless an error is returned.
// Fails with: what gather or Worker::run fail with.
#pragma once

#include <cstdint>

#include "base/function.h"
#include "cost/table.h"
#include "model/spec.h"
#include "supervisor/worker.h"

namespace tonnage::pipeline {

struct ShapeRun {
  cost::Shape shape;
  Bytes grant;             // the worker's largest one at most is asked for
  std::uint64_t seed = 0;  // others give other values
};

// The shape of the rows that can be made: with sizes, a length is only met about.
cost::Shape shape_that_runs(const model::ModelSpec& spec, cost::Shape wanted);
// `run.shape` is one of those.
Status run_shape(supervisor::Worker& worker, const model::ModelHandle& spec, const ShapeRun& run,
                 UniqueFunction<void(supervisor::RunOutcome)> done);

}  // namespace tonnage::pipeline
