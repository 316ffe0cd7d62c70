// SPDX-License-Identifier: Apache-2.0
// When a dead worker may start again: pure, the clock is an argument.
//
// Promises: after 0.5 s, doubling to 30 s with each death in a row; five deaths within 60 s open the
// breaker, which then allows one probe every 60 s until a probe becomes ready. A worker that stayed
// ready for 60 s starts from 0.5 s again. A forgiven death counts for neither.
#pragma once

#include <deque>

#include "base/time.h"

namespace tonnage::supervisor::detail {

class RestartPolicy {
 public:
  static constexpr Duration kFirstDelay = milliseconds(500);
  static constexpr Duration kLongestDelay = seconds(30);
  static constexpr Duration kWindow = seconds(60);
  static constexpr Duration kProbeDelay = seconds(60);
  static constexpr std::size_t kDeathsToBreak = 5;

  void on_ready(TimePoint now);
  void on_death(TimePoint now);
  // Takes the last death back, once.
  void forgive_last();

  bool is_broken() const { return is_broken_; }
  // When to start after the last death.
  TimePoint next_start() const;

 private:
  std::deque<TimePoint> deaths_;  // within the window before the last
  int in_a_row_ = 0;
  TimePoint last_death_{};
  TimePoint ready_since_ = kNever;
  bool is_broken_ = false;
  bool was_broken_ = false;  // before the last death
  bool may_forgive_ = false;
};

}  // namespace tonnage::supervisor::detail
