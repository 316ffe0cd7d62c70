// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/restart_policy.h"

#include <algorithm>

namespace tonnage::supervisor::detail {

void RestartPolicy::on_ready(TimePoint now) {
  ready_since_ = now;
  may_forgive_ = false;
  if (is_broken_) {
    // The probe worked: what happened before it is no longer held against the worker.
    is_broken_ = false;
    deaths_.clear();
    in_a_row_ = 0;
  }
}

void RestartPolicy::on_death(TimePoint now) {
  if (ready_since_ != kNever && now - ready_since_ >= kWindow) in_a_row_ = 0;
  ready_since_ = kNever;
  last_death_ = now;
  ++in_a_row_;
  deaths_.push_back(now);
  while (now - deaths_.front() > kWindow) deaths_.pop_front();
  was_broken_ = is_broken_;
  is_broken_ = is_broken_ || deaths_.size() >= kDeathsToBreak;
  may_forgive_ = true;
}

void RestartPolicy::forgive_last() {
  if (!may_forgive_) return;
  may_forgive_ = false;
  deaths_.pop_back();
  --in_a_row_;
  is_broken_ = was_broken_;
}

TimePoint RestartPolicy::next_start() const {
  if (is_broken_) return last_death_ + kProbeDelay;
  Duration delay = kFirstDelay;
  for (int i = 1; i < in_a_row_ && delay < kLongestDelay; ++i) delay *= 2;
  return last_death_ + std::min(delay, kLongestDelay);
}

}  // namespace tonnage::supervisor::detail
