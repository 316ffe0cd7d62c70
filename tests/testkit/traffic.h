// SPDX-License-Identifier: Apache-2.0
// Traffic: seeded arrivals with a mix of lengths; the same seed gives the same rows everywhere.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "base/time.h"

namespace tonnage::testkit {

struct LengthClass {
  double share = 0;
  std::uint32_t shortest = 0;
  std::uint32_t longest = 0;  // inclusive; uniform between the two
};

// Text lengths in tokens: mostly short, with a long tail that carries a quarter of the work.
inline constexpr std::array<LengthClass, 3> kLongTailedMix = {
    {{0.80, 8, 128}, {0.15, 128, 512}, {0.05, 512, 1024}}};
inline constexpr std::array<LengthClass, 1> kShortTexts = {{{1.0, 8, 128}}};

struct Arrival {
  TimePoint at{};
  std::uint32_t length = 0;
};

class Traffic {
 public:
  // Poisson arrivals; the shares of `mix` add up to 1. `mix` must outlive the generator.
  Traffic(std::uint64_t seed, std::span<const LengthClass> mix, double rows_per_second, TimePoint start)
      : random_(seed), mix_(mix), rate_(rows_per_second), now_(start) {}

  Arrival next() {
    now_ += from_seconds(-std::log1p(-random_.unit()) / rate_);
    return {.at = now_, .length = length()};
  }
  std::uint32_t length() {
    double at = random_.unit();
    std::size_t i = 0;
    for (; i + 1 < mix_.size() && at >= mix_[i].share; ++i) at -= mix_[i].share;
    return static_cast<std::uint32_t>(random_.between(mix_[i].shortest, mix_[i].longest));
  }

 private:
  Random random_;
  std::span<const LengthClass> mix_;
  double rate_;
  TimePoint now_;
};

}  // namespace tonnage::testkit
