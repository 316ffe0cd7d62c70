// SPDX-License-Identifier: Apache-2.0
#include "server/detail/grid_sweep.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "pipeline/measure/shape_run.h"

namespace tonnage::server::detail {
namespace {

std::uint64_t size_of(const GridPoint* point) {
  return std::uint64_t{point->shape.rows} * std::max(1U, point->shape.length);
}

// One run, waited for. Nothing: the model did not answer with outputs.
std::optional<cost::Sample> run_once(LoneModel& lone, const GridPoint& point, std::uint64_t seed) {
  std::optional<cost::Sample> sample;
  const Status started =
      pipeline::run_shape(lone.worker(), lone.model().spec, {point.shape, point.grant, seed},
                          [&](supervisor::RunOutcome outcome) {
                            if (const auto* done = std::get_if<supervisor::RunDone>(&outcome))
                              sample = cost::Sample{point.shape, done->peak, done->round_trip};
                            lone.stop();
                          });
  if (started.is_ok()) lone.run();
  return sample;
}

}  // namespace

Status sweep_grid(LoneModel& lone, std::vector<GridPoint>& grid, Duration duration,
                  const Progress& progress) {
  std::vector<GridPoint*> order;
  for (GridPoint& point : grid) {
    if (point.fits) order.push_back(&point);
  }
  std::ranges::stable_sort(order, {}, size_of);
  const TimePoint end = lone.loop().now() + duration;
  for (std::size_t i = 0; i < order.size() && lone.loop().now() < end; ++i) {
    progress(static_cast<double>(i) / static_cast<double>(order.size()));
    // The first pass over a shape touches new pages and compiles: its time says little.
    const auto first = run_once(lone, *order[i], 1);
    const auto second = first ? run_once(lone, *order[i], 2) : std::nullopt;
    if (second) order[i]->seen = cost::Sample{order[i]->shape, first->peak, second->time};
    if (!lone.worker().is_idle()) {
      return {Code::kUnavailable, "worker_lost",
              "the worker was lost while measuring: " + lone.worker().last_error().detail()};
    }
  }
  return Status::ok();
}

}  // namespace tonnage::server::detail
