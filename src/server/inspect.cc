// SPDX-License-Identifier: Apache-2.0
#include "server/inspect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "api/envelope.h"
#include "memory/reading.h"
#include "model/route.h"
#include "pipeline/measure/synthetic.h"
#include "server/detail/grid_sweep.h"
#include "server/lone_model.h"

namespace tonnage::server {
namespace {

constexpr std::uint32_t kCoarse = 4;  // factor between rows of inspect's grid
constexpr std::uint32_t kFine = 2;
constexpr double kWarmUpShare = 0.3;  // of profile's progress

std::vector<std::uint32_t> grid_lengths(const model::ModelSpec& spec) {
  if (!spec.has_length()) return {0};
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t length = spec.batching.pad_multiple; length < spec.max_length; length *= 2)
    lengths.push_back(spec.length_of(spec.size_of_length(length)));  // one that rows can have
  lengths.push_back(spec.max_length);
  return lengths;
}

std::uint32_t largest_rows(const cost::CostModel& cost, std::uint32_t max_rows, std::uint32_t length,
                           Bytes room) {
  std::uint32_t rows = 0;
  while (rows < max_rows && cost.grant({rows + 1, length}) <= room) ++rows;
  return rows;
}

SmallestBudget smallest_budget(LoneModel& lone, const supervisor::WorkerMemory& memory) {
  const pipeline::ServedModel& model = lone.model();
  SmallestBudget smallest;
  // This process does with one model what a server does.
  if (const auto reading = memory::read_process(::getpid()); reading.is_ok())
    smallest.front = reading->anonymous;
  smallest.length = model.spec->has_length() ? model.spec->max_length : 0;
  smallest.weights = memory.weights;
  smallest.base = memory.base;
  smallest.shared = lone.shared();
  smallest.loading = saturating_sub(supervisor::start_charge(lone.worker().options()), smallest.shared);
  const double charged = model::charged_per_byte(model::route_of(model.spec->route).tier);
  const std::uint32_t padded = smallest.length == 0 ? 0 : model.spec->padded(smallest.length);
  smallest.row = lease_for(model.cost->grant({1, padded}), memory.slack, charged);
  smallest.envelope = api::envelope_bytes(pipeline::synthetic_request(model.spec, 1, smallest.length, 1));
  return smallest;
}

Inspection describe(LoneModel& lone, std::uint32_t row_factor) {
  const pipeline::ServedModel& model = lone.model();
  Inspection inspection;
  inspection.spec = model.spec;
  inspection.loaded = *lone.worker().loaded();
  inspection.memory = lone.worker().memory();
  inspection.budget = lone.budget();
  inspection.cold_start = model.cold_start;
  inspection.determinism = model.cost->determinism();
  inspection.margin = model.cost->margin();
  const Bytes room = lone.worker().largest_grant_when_trimmed();
  const std::uint32_t max_rows = model.spec->batching.max_rows;
  for (const std::uint32_t length : grid_lengths(*model.spec)) {
    for (std::uint32_t rows = 1; rows <= max_rows;
         rows = rows == max_rows ? rows + 1 : std::min(rows * row_factor, max_rows)) {
      const cost::Shape shape{rows, length};
      const Bytes grant = model.cost->grant(shape);
      inspection.grid.push_back({shape, model.cost->predict_peak(shape), grant,
                                 model.cost->predict_time(shape), grant <= room, std::nullopt});
    }
    inspection.largest.push_back({length, largest_rows(*model.cost, max_rows, length, room),
                                  largest_rows(*model.cost, max_rows, length, room + kOneMore)});
  }
  inspection.smallest = smallest_budget(lone, inspection.memory);
  return inspection;
}

// Where the budget may be the reason, the model is looked at with all that the machine has.
Result<LoneModel> start(const ServerOptions& options, bool forget, const Progress& progress) {
  Result<LoneModel> lone = LoneModel::start(options, forget, progress);
  const std::string reason(lone.status().reason());
  if ((reason != "over_budget" && reason != "warm_up_failed") || options.memory == Bytes()) return lone;
  ServerOptions roomy = options;
  roomy.memory = Bytes();
  Result<LoneModel> fits = LoneModel::start(roomy, forget, progress);
  if (!fits.is_ok()) return lone;
  const SmallestBudget smallest = smallest_budget(*fits, fits->worker().memory());
  if (smallest.total() <= options.memory) return lone;
  return Status(
      Code::kUnavailable, "over_budget",
      fmt::format("{}. The smallest budget for this model is {}. {} are missing", lone.status().detail(),
                  smallest.to_string(), format_bytes(smallest.total() - options.memory)));
}

}  // namespace

Result<Inspection> inspect(const ServerOptions& options, const Progress& progress) {
  TONNAGE_ASSIGN(LoneModel lone, start(options, false, progress));
  return describe(lone, kCoarse);
}

Result<Inspection> profile(const ServerOptions& options, const ProfileOptions& what,
                           const Progress& progress) {
  TONNAGE_ASSIGN(LoneModel lone,
                 start(options, what.refresh, [&](double part) { progress(part * kWarmUpShare); }));
  Inspection inspection = describe(lone, kFine);
  TONNAGE_TRY(detail::sweep_grid(lone, inspection.grid, what.duration,
                                 [&](double part) { progress(kWarmUpShare + part * (1 - kWarmUpShare)); }));
  return inspection;
}

}  // namespace tonnage::server
