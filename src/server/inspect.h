// SPDX-License-Identifier: Apache-2.0
// inspect: what a model is and what it will cost, learned by loading it in a worker of its own.
// profile: the same, with every shape of a grid measured beside its prediction.
//
// Promises: nothing listens and nothing stays behind; a model that cannot be loaded is an error with
// the worker's reason; where the budget is too small, it is loaded once more with what the machine has, to
// say how much is missing. A profile that the state directory knows is used, a new one is saved there.
// Threads: the caller's. Fails with: what loading or warming up failed with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost/cost_model.h"
#include "model/spec.h"
#include "server/server.h"
#include "server/smallest_budget.h"
#include "supervisor/worker.h"

namespace tonnage::server {

// `progress` is called now and then with 0 … 1.
using Progress = std::function<void(double)>;

struct GridPoint {
  cost::Shape shape;
  Bytes peak;   // the fit
  Bytes grant;  // with the margin
  Duration time{};
  bool fits = false;                 // into the budget, beside base and weights
  std::optional<cost::Sample> seen;  // profile: peak of the first run, time of a later one
};

struct LargestBatch {
  std::uint32_t length = 0;
  std::uint32_t rows = 0;       // 0: not even one row fits
  std::uint32_t rows_more = 0;  // with kOneMore on top of the budget
};
inline constexpr Bytes kOneMore = gib(1);

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
  SmallestBudget smallest;
};

Result<Inspection> inspect(const ServerOptions& options, const Progress& progress);

struct ProfileOptions {
  bool refresh = false;              // measure costs anew although they are known
  Duration duration = seconds(120);  // for the grid; small shapes first, what is left is predicted only
};
Result<Inspection> profile(const ServerOptions& options, const ProfileOptions& what,
                           const Progress& progress);

}  // namespace tonnage::server
