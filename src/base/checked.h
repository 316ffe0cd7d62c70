// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes that came from outside: an overflow is an answer, not a wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tonnage {

inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
// True when [offset, offset + length) lies inside [0, total).
inline bool fits_inside(std::uint64_t offset, std::uint64_t length, std::uint64_t total) {
  return offset <= total && length <= total - offset;
}

}  // namespace tonnage
