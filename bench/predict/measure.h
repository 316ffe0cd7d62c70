// SPDX-License-Identifier: Apache-2.0
// The measurements of the predict bench, each on a worker of its own.
#pragma once

#include <cstdint>

#include "bench/predict/score.h"
#include "bench/predict/subject.h"

namespace tonnage::bench {

struct Plan {
  std::uint64_t shapes = 1000;
  std::uint64_t seed = 1;
  bool with_memory = true;  // resident error and budget use too
};

// Profiles the model as a load does, then:
//  1. Runs unseen shapes, each inside the grant that the model predicts. An over-grant is counted and the
//     shape run again with room, so that its true peak is known. Learning is frozen, except for a model
//     whose values matter: that one is judged as it is served, learning.
//  2. Runs subject.batches more of the shapes that it has seen.
//  3. In a new worker, runs ever larger shapes and compares what the lease expects to be resident at most
//     with what the kernel says.
//  4. In a new worker with room for ten of the largest rows, fills it with as many rows as are granted.
Result<Score> measure(const Subject& subject, const Plan& plan);

}  // namespace tonnage::bench
