// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rotation/standby_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batch/split.h"
#include "memory/lease.h"
#include "pipeline/measure/shape_run.h"
#include "wire/messages.h"

namespace tonnage::pipeline {
namespace {

Status failed(std::string detail) { return {Code::kUnavailable, "check_failed", std::move(detail)}; }

std::uint32_t shortest_of(const model::ModelSpec& spec) { return spec.has_length() ? spec.padded(1) : 0; }

}  // namespace

Bytes check_room(const model::ModelSpec& spec, const cost::CostModel& cost) {
  return cost.grant({1, shortest_of(spec)}) +
         (spec.device.empty() ? memory::kFirstSlack : wire::kSegmentSlack);
}

std::vector<CheckShape> check_shapes(const model::ModelSpec& spec, const cost::CostModel& cost, Bytes free) {
  const std::uint32_t shortest = shortest_of(spec);
  std::vector<cost::Shape> shapes = {{1, shortest}};
  if (spec.max_length > shortest) shapes.push_back({1, spec.max_length});
  const cost::CostTable& table = cost.table();
  const std::uint32_t length = spec.has_length() ? spec.padded(std::max(1U, spec.max_length / 4)) : 0;
  const auto fits = [&](std::uint32_t rows) {
    return cost.grant({rows, length}) <= Bytes(free.count() / 2) &&
           table.time(rows, table.column_of(length)) <= spec.batching.max_batch_time;
  };
  std::uint32_t rows = 1;
  while (rows < spec.batching.max_rows && fits(rows + 1)) ++rows;
  if (rows > 1) shapes.push_back({rows, length});
  std::vector<CheckShape> checks;
  for (const cost::Shape& shape : shapes) checks.push_back({shape, cost.grant(shape)});
  return checks;
}

StandbyCheck::StandbyCheck(Loop& loop, model::ModelHandle spec, supervisor::Worker& standby,
                           std::vector<CheckShape> shapes, Done done)
    : loop_(loop),
      spec_(std::move(spec)),
      worker_(standby),
      shapes_(std::move(shapes)),
      done_(std::move(done)) {}

void StandbyCheck::step() {
  if (!worker_.is_idle()) return finish(failed("the standby was lost: " + worker_.last_error().detail()));
  while (next_ < shapes_.size() && shapes_[next_].grant > worker_.largest_grant()) ++next_;
  if (next_ == shapes_.size()) {
    return finish(good_ > 0 ? Status::ok() : failed("the standby could run no shape at all"));
  }
  const Status started = run_shape(worker_, spec_, {shapes_[next_].shape, shapes_[next_].grant, next_ + 1},
                                   [this](const supervisor::RunOutcome& outcome) { finished(outcome); });
  if (!started.is_ok()) finish(started);
}

void StandbyCheck::finished(const supervisor::RunOutcome& outcome) {
  const cost::Shape shape = shapes_[next_].shape;
  if (const auto* done = std::get_if<supervisor::RunDone>(&outcome)) {
    const Status proven = batch::check_outputs(*spec_, done->outputs, shape.rows, Bytes(done->region.size()));
    if (!proven.is_ok()) return finish(failed(proven.detail()));
    ++good_;
  } else {
    const auto& failure = std::get<supervisor::RunFailed>(outcome);
    const bool is_over = failure.failure == supervisor::RunFailure::kOverGrant;
    if (is_over || !worker_.is_idle()) {
      return finish(
          failed(fmt::format("{} × {} did not run as known: {}", shape.rows, shape.length, failure.detail)));
    }
  }
  ++next_;
  next_step_ = loop_.call_at(loop_.now(), [this] { step(); });
}

void StandbyCheck::finish(Status status) {
  auto done = std::move(done_);
  if (done) done(std::move(status));
}

}  // namespace tonnage::pipeline
