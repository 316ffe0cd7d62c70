// SPDX-License-Identifier: Apache-2.0
// Bucket: what traffic taught about one cell of the table (rows, padded length), relative to the fit.
//
// Promises: a peak above the bound raises it at once, without a cap; a bound falls by at most 5 % per
// 100 batches of its bucket, never below the largest peak of the last 500 to 1,000 of them. O(1).
// Threads: values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tonnage::cost::detail {

inline constexpr std::uint32_t kBlock = 500;      // batches per block of recent maxima
inline constexpr std::uint32_t kFallEvery = 100;  // batches
inline constexpr double kFallFactor = 0.95;

struct Bucket {
  double bound = 0;            // bytes; 0: nothing learned, the fit decides
  std::uint64_t running = 0;   // largest peak of the running block
  std::uint64_t previous = 0;  // … of the block before it
  std::uint32_t in_block = 0;
  std::uint32_t batches = 0;  // saturates
  bool refused = false;       // since its last success
  bool exact = false;         // measured at the padded length itself
  double log_time = 0;        // mean of log(actual ÷ predicted time)
  std::uint32_t times = 0;

  std::uint64_t recent_max() const { return std::max(running, previous); }
  // Counts a batch; true when the bound should be looked at for falling.
  bool count(std::uint64_t peak) {
    if (in_block == kBlock) {
      previous = running;
      running = 0;
      in_block = 0;
    }
    ++in_block;
    running = std::max(running, peak);
    if (batches < UINT32_MAX) ++batches;
    return batches % kFallEvery == 0;
  }
};

}  // namespace tonnage::cost::detail
