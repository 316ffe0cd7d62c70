// SPDX-License-Identifier: Apache-2.0
// Bytes: an amount of memory as a type. A bare integer never holds bytes.
//
// Promises: arithmetic that would wrap saturates upward (an estimate too large is refused; one that
// wrapped to 8 bytes would be admitted) and subtraction below zero is a TONNAGE_CHECK.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tonnage {

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t count) : count_(count) {}

  constexpr std::uint64_t count() const { return count_; }
  constexpr std::size_t size() const { return static_cast<std::size_t>(count_); }
  static constexpr Bytes max() { return Bytes(std::numeric_limits<std::uint64_t>::max()); }

  constexpr auto operator<=>(const Bytes&) const = default;

  constexpr Bytes& operator+=(Bytes other) {
    if (__builtin_add_overflow(count_, other.count_, &count_)) *this = max();
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    TONNAGE_CHECK(other.count_ <= count_, "Bytes went below zero");
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, std::uint64_t times) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a.count_, times, &product) ? max() : Bytes(product);
  }

 private:
  std::uint64_t count_ = 0;
};

// a − b, or zero where b is larger.
constexpr Bytes saturating_sub(Bytes a, Bytes b) { return a > b ? a - b : Bytes(); }
// Rounded up to a multiple of `step` (a power of two is not required).
constexpr Bytes round_up(Bytes value, Bytes step) {
  const std::uint64_t rest = value.count() % step.count();
  return rest == 0 ? value : value + Bytes(step.count() - rest);
}
// value × factor for factors such as 1.02 or 0.8, rounded up.
Bytes scale(Bytes value, double factor);

constexpr Bytes kib(std::uint64_t n) { return Bytes(n) * 1024; }
constexpr Bytes mib(std::uint64_t n) { return Bytes(n) * 1024 * 1024; }
constexpr Bytes gib(std::uint64_t n) { return Bytes(n) * 1024 * 1024 * 1024; }

// "600MiB", "4 GiB", "1.5GB", "1024" (bytes). Error: bad_size, naming the allowed units.
Result<Bytes> parse_bytes(std::string_view text);
// "612.4 MiB"; for people.
std::string format_bytes(Bytes value);

}  // namespace tonnage
