// SPDX-License-Identifier: Apache-2.0
#include "admission/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tonnage::admission {
namespace {

constexpr double kLongestWait = 86400;  // seconds; beyond it only "very long" matters

// Rows of one request that one batch must hold.
std::uint32_t rows_at_once(const Question& q) {
  return q.spec->rows == model::RowsRule::kTogether ? q.rows : 1;
}

Status never_fits(std::string detail) { return {Code::kTooLarge, "never_fits", std::move(detail)}; }

Status check_rows(const Question& q) {
  const std::uint32_t max_rows = q.spec->batching.max_rows;
  if (rows_at_once(q) <= max_rows) return Status::ok();
  return never_fits(
      fmt::format("the request has {} rows, which model '{}' runs in one batch; at most {} are allowed",
                  q.rows, q.spec->name, max_rows));
}

Status check_envelope(const Question& q) {
  if (q.envelope <= q.ingress_limit) return Status::ok();
  return never_fits(
      fmt::format("the request would hold {} in the server with its answer; one request may hold {}",
                  format_bytes(q.envelope), format_bytes(q.ingress_limit)));
}

// What is known without the cost model.
Status check_fit(const Question& q) {
  if (!q.ready) {
    return {Code::kUnavailable, "not_ready",
            fmt::format("model '{}' is not ready: {}", q.spec->name, q.not_ready_why)};
  }
  TONNAGE_TRY(check_rows(q));
  return check_envelope(q);
}

Status check_expired(const Question& q) {
  if (q.deadline > q.now) return Status::ok();
  return {Code::kDeadlineExceeded, "expired", "the deadline had passed when the request was admitted"};
}

cost::Shape shape_of(const Question& q) {
  return {.rows = rows_at_once(q), .length = q.spec->padded(q.longest)};
}

Status check_grant(const Question& q) {
  const cost::Shape shape = shape_of(q);
  const Bytes predicted = needed_grant(q);
  if (predicted <= q.largest_possible_grant) return Status::ok();
  std::string text = fmt::format("running {} {} needs a predicted {} and at most {} can be had", shape.rows,
                                 shape.rows == 1 ? "row" : "rows", format_bytes(predicted),
                                 format_bytes(q.largest_possible_grant));
  if (q.spec->has_length()) {
    const std::uint32_t largest = largest_admissible_length(*q.cost, *q.spec, q.largest_possible_grant);
    const bool has_sizes = !q.spec->sizes.empty();
    const std::uint64_t unit = q.spec->positions_per_unit;
    text += fmt::format("; the longest row has {0} {1}, the largest admissible {0} is {2}{3}",
                        has_sizes ? "size (in padded positions)" : "length", q.longest * unit, largest * unit,
                        shape.rows == 1 ? "" : " for a single row");
  }
  return never_fits(std::move(text));
}

// Whole seconds, inside [base, 1.25 base]: a second more would leave the band for small bases.
int retry_after(double excess, double jitter) {
  const double base = std::ceil(std::clamp(excess, 1.0, kLongestWait));
  return static_cast<int>(std::floor(base * (1 + 0.25 * std::clamp(jitter, 0.0, 1.0))));
}

Status check_deadline(const Question& q) {
  if (q.deadline == kNever) return Status::ok();
  // predict_time() has the drift already.
  const Duration alone = q.cost->predict_time(shape_of(q));
  const double wait = to_seconds(predicted_wait(q.load)) + to_seconds(alone) +
                      to_seconds(q.load.batch) * q.load.actual_over_predicted;
  const double left = to_seconds(q.deadline - q.now);
  if (wait <= left) return Status::ok();
  return Status(
             Code::kOverloaded, "queue_time",
             fmt::format("an answer is predicted after {:.3f} s and the deadline is in {:.3f} s", wait, left))
      .with_retry_after(retry_after(wait - left, q.jitter));
}

}  // namespace

Duration predicted_wait(const Load& load) {
  const double servers = std::max(load.share, 0.0) * load.workers;
  const double ahead = to_seconds(load.work_ahead);
  const double queue = ahead <= 0 ? 0 : servers > 0 ? ahead / servers : kLongestWait;
  const double wait = (to_seconds(load.residual) + queue) * load.actual_over_predicted;
  return from_seconds(std::clamp(wait, 0.0, kLongestWait));
}

Bytes needed_grant(const Question& q) { return q.cost->grant(shape_of(q)); }

std::uint32_t largest_admissible_length(const cost::CostModel& cost, const model::ModelSpec& spec,
                                        Bytes limit) {
  if (!spec.has_length()) return 0;
  std::uint32_t fits = 0;
  std::uint32_t beyond = spec.max_length + 1;
  while (beyond - fits > 1) {
    const std::uint32_t middle = fits + (beyond - fits) / 2;
    const bool ok = cost.grant({.rows = 1, .length = spec.padded(middle)}) <= limit;
    (ok ? fits : beyond) = middle;
  }
  return fits;
}

Status decide(const Question& q) {
  TONNAGE_TRY(check_fit(q));
  TONNAGE_TRY(check_grant(q));
  TONNAGE_TRY(check_expired(q));
  return check_deadline(q);
}

Status decide_by_facts(const Question& q) {
  TONNAGE_TRY(check_fit(q));
  return check_expired(q);
}

}  // namespace tonnage::admission
