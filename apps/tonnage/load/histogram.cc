// SPDX-License-Identifier: Apache-2.0
#include "load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tonnage::load {

// Values below kSteps have a bucket each; above, the top kStepBits bits after the leading one choose it.
std::size_t Histogram::index_of(std::uint64_t micros) {
  if (micros < kSteps) return static_cast<std::size_t>(micros);
  const auto octave = static_cast<std::uint32_t>(std::bit_width(micros)) - kStepBits;
  const std::uint64_t step = (micros >> (octave - 1)) - kSteps;
  return std::size_t{octave} * kSteps + static_cast<std::size_t>(step);
}

std::uint64_t Histogram::upper_of(std::size_t index) {
  const std::uint64_t octave = index / kSteps;
  const std::uint64_t step = index % kSteps;
  if (octave == 0) return step;
  return ((kSteps + step + 1) << (octave - 1)) - 1;
}

void Histogram::record(Duration value) {
  const std::int64_t micros = std::max<std::int64_t>(0, value / microseconds(1));
  const std::size_t index = std::min(index_of(static_cast<std::uint64_t>(micros)), counts_.size() - 1);
  ++counts_.at(index);
  ++count_;
  max_ = std::max(max_, micros);
}

Duration Histogram::quantile(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_.at(i);
    if (seen >= wanted && seen > 0) {
      const auto upper = static_cast<std::int64_t>(upper_of(i));
      return Duration(microseconds(std::min(upper, max_)));
    }
  }
  return Duration(0);
}

}  // namespace tonnage::load
