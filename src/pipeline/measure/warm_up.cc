// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure/warm_up.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "pipeline/measure/shape_run.h"

namespace tonnage::pipeline {
namespace {

constexpr std::uint64_t kSeedsPerAttempt = 1'000'000;
constexpr Duration kLookAgain = milliseconds(2);

cost::ProfileLimits profile_limits(const model::ModelSpec& spec, Bytes free) {
  cost::ProfileLimits limits;
  limits.free = free;
  limits.ends_with_largest = !spec.device.empty();
  limits.max_batch_time = std::max(spec.batching.max_batch_time, spec.batching.max_batch_time_long);
  return limits;
}

}  // namespace

cost::CostOptions cost_options(const model::ModelSpec& spec) {
  cost::CostOptions options;
  options.max_rows = spec.batching.max_rows;
  options.pad_multiple = spec.batching.pad_multiple;
  options.max_length = spec.max_length;
  return options;
}

WarmUp::WarmUp(Loop& loop, model::ModelHandle spec, supervisor::Worker& worker, std::uint64_t attempt,
               Done done)
    : loop_(loop),
      spec_(std::move(spec)),
      worker_(worker),
      first_seed_(1 + attempt * kSeedsPerAttempt),
      done_(std::move(done)),
      profiler_(cost_options(*spec_), profile_limits(*spec_, worker.largest_grant())) {}

void WarmUp::go_on_with(cost::Profiler rest) {
  profiler_ = std::move(rest);
  profiler_.go_on(worker_.largest_grant());
}

std::optional<cost::Profiler> WarmUp::take_rest() {
  if (!leaves_rest_ || !profiler_.has_measured()) return std::nullopt;
  return std::move(profiler_);
}

void WarmUp::stop_short(Status why) {
  leaves_rest_ = true;
  done_(std::move(why));
}

void WarmUp::start() {
  started_ = loop_.now();
  step();
}

void WarmUp::step() {
  // Pages that its own batches left behind keep neither the next ones out nor, in the end, the first
  // requests.
  if (std::exchange(has_run_, false) && worker_.is_overdrawn()) worker_.trim();
  if (worker_.is_trimming()) {
    next_step_ = loop_.call_after(kLookAgain, [this] { step(); });
    return;
  }
  if (!worker_.is_idle()) {  // it died between two shapes
    return stop_short(Status(Code::kUnavailable, "warm_up_failed",
                             "the worker was lost while warming up: " + worker_.last_error().detail()));
  }
  const std::optional<cost::ProfileStep> next = profiler_.next(loop_.now() - started_);
  if (!next) return finish();
  const cost::Shape shape = shape_that_runs(*spec_, next->shape);
  const Status started = run_shape(
      worker_, spec_, {shape, next->grant, first_seed_ + next->seed},
      [this, step = *next, shape](const supervisor::RunOutcome& outcome) { finished(step, shape, outcome); });
  if (!started.is_ok()) {
    profiler_.put_back(*next);
    stop_short(started);
  }
}

void WarmUp::finished(const cost::ProfileStep& step, cost::Shape shape,
                      const supervisor::RunOutcome& outcome) {
  has_run_ = true;
  if (const auto* done = std::get_if<supervisor::RunDone>(&outcome)) {
    profiler_.add(step, {shape, done->peak, done->round_trip});
  } else {
    const auto& failed = std::get<supervisor::RunFailed>(outcome);
    last_failure_ = failed.detail;
    if (!worker_.is_idle()) {
      profiler_.lost(step);
      return stop_short(Status(Code::kUnavailable, "warm_up_failed",
                               "the worker was lost while warming up: " + failed.detail));
    }
    profiler_.refused(step, failed.needed);
  }
  next_step_ = loop_.call_at(loop_.now(), [this] { this->step(); });
}

void WarmUp::finish() {
  if (!profiler_.has_measured()) {
    return done_(Status(Code::kUnavailable, "warm_up_failed",
                        "no shape could be run while warming up: " + last_failure_));
  }
  cost::CostModel model = profiler_.take_model();
  if (Status fitted = model.fit(); !fitted.is_ok()) return done_(fitted);
  done_(std::move(model));
}

}  // namespace tonnage::pipeline
