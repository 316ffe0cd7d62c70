// SPDX-License-Identifier: Apache-2.0
// The clock is an argument: policies take a TimePoint, mechanisms take a Loop (base/loop.h).
// Nothing but the loop of a real process, and timers of front ends, reads the real clock.
#pragma once

#include <chrono>

namespace tonnage {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline double to_millis(Duration d) { return to_seconds(d) * 1e3; }
inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

inline constexpr TimePoint kNever = TimePoint::max();

}  // namespace tonnage
