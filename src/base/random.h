// SPDX-License-Identifier: Apache-2.0
// Random: SplitMix64 (Steele, Lea, Flood 2014): small, seeded, the same on every machine.
// Source: https://doi.org/10.1145/2714064.2660195
#pragma once

#include <cstdint>

namespace tonnage {

class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // In [0, bound); bound > 0. The bias of the modulus is below 2^-32 for bounds below 2^32.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  // In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  // In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  std::uint64_t operator()() { return next(); }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return ~0ULL; }

 private:
  std::uint64_t state_;
};

}  // namespace tonnage
