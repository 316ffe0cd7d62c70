// SPDX-License-Identifier: Apache-2.0
// inspect: what a model is and what it will cost, learned by loading it in a worker of its own.
//
// Promises: nothing listens and nothing stays behind; a model that cannot be loaded is an error with
// the worker's reason. A profile that the state directory knows is used, a new one is saved there.
// Threads: the caller's. Fails with: what loading or warming up failed with.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cost/cost_model.h"
#include "model/spec.h"
#include "server/server.h"
#include "supervisor/worker.h"

namespace tonnage::server {

struct GridPoint {
  cost::Shape shape;
  Bytes peak;   // the fit
  Bytes grant;  // with the margin
  Duration time{};
  bool fits = false;  // into the budget, beside base and weights
};

struct LargestBatch {
  std::uint32_t length = 0;
  std::uint32_t rows = 0;  // 0: not even one row fits
};

struct Inspection {
  model::ModelHandle spec;
  wire::LoadedDoc loaded;
  supervisor::WorkerMemory memory;
  Bytes budget;
  Duration cold_start{};
  cost::Determinism determinism = cost::Determinism::kUnknown;
  double margin = 0;
  std::vector<GridPoint> grid;
  std::vector<LargestBatch> largest;
};

// `progress` is called now and then with 0 … 1.
Result<Inspection> inspect(const ServerOptions& options, const std::function<void(double)>& progress);

}  // namespace tonnage::server
