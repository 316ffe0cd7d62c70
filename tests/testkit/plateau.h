// SPDX-License-Identifier: Apache-2.0
// Does a series of memory readings reach a plateau?
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

namespace tonnage::testkit {

// By which share the last third of a series grows: the mean of its last tenth over the mean of its first.
// Means, because malloc gives pages back when it likes.
inline double growth_of_last_third(std::span<const double> series) {
  const auto last = series.last(series.size() / 3);
  const std::size_t tenth = std::max<std::size_t>(1, last.size() / 10);
  const auto mean = [tenth](std::span<const double> part) {
    return std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(tenth);
  };
  return mean(last.last(tenth)) / std::max(1.0, mean(last.first(tenth))) - 1;
}

}  // namespace tonnage::testkit
