// SPDX-License-Identifier: Apache-2.0
// Arrivals: when requests are meant to start, in an open loop. The times depend on rate and seed
// alone, never on the server: latency is counted from them (no coordinated omission).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace tonnage::load {

enum class Spacing : std::uint8_t { kPoisson, kFixed };

class Arrivals {
 public:
  Arrivals(double rate, Spacing spacing, std::uint64_t seed)
      : mean_(1.0 / rate), spacing_(spacing), random_(seed) {}

  // Offset of the next request from the start; never falls.
  Duration next() {
    // Inverse of the exponential distribution; unit() < 1 keeps the logarithm finite.
    at_ += spacing_ == Spacing::kFixed ? mean_ : -mean_ * std::log(1.0 - random_.unit());
    return from_seconds(at_);
  }

 private:
  double mean_;
  Spacing spacing_;
  Random random_;
  double at_ = 0;
};

}  // namespace tonnage::load
