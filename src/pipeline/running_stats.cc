// SPDX-License-Identifier: Apache-2.0
#include "pipeline/running_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tonnage::pipeline {

void RunningStats::add(const BatchRecord& batch) {
  ++batches;
  rows += batch.rows;
  real_tokens += batch.real_tokens;
  padded_tokens += batch.padded_tokens;
  peak_highest = std::max(peak_highest, batch.peak);
  if (batch.peak == Bytes()) return;
  const double peak = static_cast<double>(batch.peak.count());
  const double error = std::abs(static_cast<double>(batch.predicted.count()) - peak) / peak;
  peak_error_worst = std::max(peak_error_worst, error);
  if (errors_.size() < kKept) {
    errors_.push_back(static_cast<float>(error));
  } else {
    errors_[next_] = static_cast<float>(error);
    next_ = (next_ + 1) % kKept;
  }
}

double RunningStats::peak_error_median() const {
  if (errors_.empty()) return 0;
  std::vector<float> sorted = errors_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return static_cast<double>(*middle);
}

Safety safe_to_enforce(model::Enforce now, const Observed& seen) {
  constexpr std::uint64_t kEnough = 100;
  if (now == model::Enforce::kOn) return {true, "it is enforced"};
  if (seen.answered > 0) {
    return {false, fmt::format("{} of {} requests that would have been refused were answered", seen.answered,
                               seen.refusals)};
  }
  if (seen.batches < kEnough) {
    return {false, fmt::format("only {} batches were seen; {} are needed", seen.batches, kEnough)};
  }
  return {true,
          fmt::format("in {} batches {} requests would have been refused, and none of them was answered",
                      seen.batches, seen.refusals)};
}

}  // namespace tonnage::pipeline
