// SPDX-License-Identifier: Apache-2.0
#include "load/results.h"

#include <algorithm>

namespace tonnage::load {

void Results::add(const Sample& sample) {
  if (sample.is_answered()) ends_.push_back(sample.start + sample.latency);
  if (sample.is_warmup) return;
  lengths_.insert(sample.tokens);
  truncated_ += sample.truncated;
  for (ClassResult* result : {&classes_.at(static_cast<std::size_t>(sample.length_class)), &all_}) {
    ++result->sent;
    if (!sample.is_answered()) continue;
    ++result->answered;
    result->latency.record(sample.latency);
  }
  if (!sample.is_answered()) {
    ++refusals_[sample.reason];
  } else if (goal_ == Duration(0) || sample.latency <= goal_) {
    ++good_;
  }
}

std::uint64_t Results::answered_between(Duration from, Duration until) const {
  return static_cast<std::uint64_t>(
      std::count_if(ends_.begin(), ends_.end(), [&](Duration end) { return end >= from && end < until; }));
}

}  // namespace tonnage::load
