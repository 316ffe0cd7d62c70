// SPDX-License-Identifier: Apache-2.0
#include "server/inspect.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <thread>
#include <utility>

#include "memory/limits.h"
#include "model/model_toml.h"
#include "pipeline/pipeline.h"
#include "server/asio_loop.h"
#include "server/launch.h"
#include "state/state_store.h"
#include "supervisor/child_process.h"

namespace tonnage::server {
namespace {

constexpr Duration kProgressEvery = milliseconds(200);

std::vector<std::uint32_t> grid_lengths(const model::ModelSpec& spec) {
  if (!spec.has_length()) return {0};
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t length = spec.batching.pad_multiple; length < spec.max_length; length *= 2)
    lengths.push_back(length);
  lengths.push_back(spec.max_length);
  return lengths;
}

std::uint32_t largest_rows(const cost::CostModel& cost, std::uint32_t max_rows, std::uint32_t length,
                           Bytes room) {
  std::uint32_t rows = 0;
  while (rows < max_rows && cost.grant({rows + 1, length}) <= room) ++rows;
  return rows;
}

Inspection describe(const pipeline::ServedModel& model, Bytes budget) {
  const supervisor::Worker& worker = *model.workers.front().worker;
  Inspection inspection;
  inspection.spec = model.spec;
  inspection.loaded = *worker.loaded();
  inspection.memory = worker.memory();
  inspection.budget = budget;
  inspection.cold_start = model.cold_start;
  inspection.determinism = model.cost->determinism();
  inspection.margin = model.cost->margin();
  const Bytes room = worker.largest_grant();
  const std::uint32_t max_rows = model.spec->batching.max_rows;
  for (const std::uint32_t length : grid_lengths(*model.spec)) {
    for (std::uint32_t rows = 1; rows <= max_rows;
         rows = rows == max_rows ? rows + 1 : std::min(rows * 4, max_rows)) {
      const cost::Shape shape{rows, length};
      const Bytes grant = model.cost->grant(shape);
      inspection.grid.push_back(
          {shape, model.cost->predict_peak(shape), grant, model.cost->predict_time(shape), grant <= room});
    }
    inspection.largest.push_back({length, largest_rows(*model.cost, max_rows, length, room)});
  }
  return inspection;
}

}  // namespace

Result<Inspection> inspect(const ServerOptions& options, const std::function<void(double)>& progress) {
  TONNAGE_ASSIGN(model::ModelSpec spec, model::load_model_directory(options.models));
  if (options.threads > 0) spec.threads = options.threads;
  spec.workers = 1;
  const std::string name = spec.name;
  TONNAGE_ASSIGN(const std::vector<memory::DetectedLimit> limits, memory::detect_limits());

  const std::unique_ptr<telemetry::Log> log = telemetry::make_null_log();
  boost::asio::io_context io(1);
  AsioLoop loop(io);
  memory::Budget budget("host", memory::budget_from(options.memory, limits, options.headroom));
  supervisor::ChildProcessFactory processes(loop);
  const auto profiles = state::StateStore::open(options.state_directory, *log);
  pipeline::PipelineOptions pipeline_options;
  pipeline_options.compute_tokens = std::max(1U, std::thread::hardware_concurrency());
  pipeline_options.launch = [&options](const model::ModelSpec& model) {
    return launch_command(model, options.worker_directory);
  };
  pipeline::Pipeline pipeline(std::move(pipeline_options), {loop, processes, budget, *log, profiles.get()});
  pipeline.on_model_change([&] {
    const pipeline::ServedModel* model = pipeline.find(name);
    if (model->phase == pipeline::ModelPhase::kReady || !model->trouble.is_ok()) io.stop();
  });
  Loop::Timer tick;
  const std::function<void()> report = [&] {
    const pipeline::ServedModel* model = pipeline.find(name);
    if (model->warm_up) progress(model->warm_up->progress());
    tick = loop.call_after(kProgressEvery, [&report] { report(); });
  };
  TONNAGE_TRY(pipeline.add_model(std::move(spec)));
  report();
  io.run();
  const pipeline::ServedModel* model = pipeline.find(name);
  if (model->phase != pipeline::ModelPhase::kReady) return model->trouble;
  return describe(*model, budget.root().limit());
}

}  // namespace tonnage::server
