// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure/shape_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "batch/gather.h"
#include "pipeline/measure/synthetic.h"

namespace tonnage::pipeline {
namespace {

// Nothing is known about a shape before its first run.
constexpr Duration kWatchdog = seconds(120);

}  // namespace

cost::Shape shape_that_runs(const model::ModelSpec& spec, cost::Shape wanted) {
  return {wanted.rows, spec.length_of(spec.size_of_length(wanted.length))};
}

Status run_shape(supervisor::Worker& worker, const model::ModelHandle& spec, const ShapeRun& run,
                 UniqueFunction<void(supervisor::RunOutcome)> done) {
  const request::Request request = synthetic_request(spec, run.shape.rows, run.shape.length, run.seed);
  std::vector<batch::RowRef> rows;
  for (std::uint32_t row = 0; row < request.rows; ++row) rows.push_back({&request, row});
  supervisor::RunCommand command;
  TONNAGE_ASSIGN(command.inputs, batch::gather(*spec, rows, batch::padded_size(*spec, rows, run.shape.length),
                                               worker.input_slot(0)));
  command.rows = run.shape.rows;
  command.length = run.shape.length;
  command.grant = std::min(run.grant, worker.largest_grant());
  command.watchdog = kWatchdog;
  return worker.run(std::move(command), std::move(done));
}

}  // namespace tonnage::pipeline
