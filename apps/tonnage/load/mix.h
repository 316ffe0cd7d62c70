// SPDX-License-Identifier: Apache-2.0
// The mix of lengths: which share of requests is short, medium and long, in tokens.
// Fails with: invalid_argument/bad_mix.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/random.h"
#include "base/status.h"

namespace tonnage::load {

enum class LengthClass : std::uint8_t { kShort, kMedium, kLong };
inline constexpr std::size_t kClasses = 3;
inline constexpr std::array<std::string_view, kClasses> kClassNames = {"short", "medium", "long"};
inline constexpr std::array<std::string_view, kClasses> kClassRanges = {"< 128", "128-512", "> 512"};

inline LengthClass class_of(std::uint32_t tokens) {
  if (tokens < 128) return LengthClass::kShort;
  return tokens <= 512 ? LengthClass::kMedium : LengthClass::kLong;
}

struct Mix {
  std::array<double, kClasses> share{};  // sum 1

  LengthClass draw(Random& random) const;
  // Uniform inside the class, 8 to 1,024 in all, clipped to max_length (0: not clipped).
  static std::uint32_t draw_length(LengthClass which, std::uint32_t max_length, Random& random);
};

// "80/15/5", percent. Error: bad_mix.
Result<Mix> parse_mix(std::string_view text);

}  // namespace tonnage::load
