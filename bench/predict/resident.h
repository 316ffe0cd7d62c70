// SPDX-License-Identifier: Apache-2.0
// What a lease expects to be resident, against what the kernel says. Each call starts a worker of its own.
#pragma once

#include "bench/predict/score.h"
#include "bench/predict/subject.h"
#include "cost/cost_model.h"

namespace tonnage::bench {

// Ever larger shapes: each may make more resident than any before it.
Status measure_resident(const Subject& subject, const cost::CostModel& model, std::uint64_t seed,
                        Score& score);
// A budget of base, weights and room for ten of the largest rows or more; batches as large as it grants.
Status measure_budget_use(const Subject& subject, const cost::CostModel& model, std::uint64_t seed,
                          Score& score);

}  // namespace tonnage::bench
