// SPDX-License-Identifier: Apache-2.0
#include "load/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tonnage::load {

LengthClass Mix::draw(Random& random) const {
  const double at = random.unit();
  if (at < share[0]) return LengthClass::kShort;
  // The last class with a share takes what rounding leaves.
  if (at < share[0] + share[1] || share[2] == 0)
    return share[1] > 0 ? LengthClass::kMedium : LengthClass::kShort;
  return LengthClass::kLong;
}

std::uint32_t Mix::draw_length(LengthClass which, std::uint32_t max_length, Random& random) {
  struct Range {
    std::int64_t low;
    std::int64_t high;
  };
  constexpr std::array<Range, kClasses> kRanges = {{{8, 127}, {128, 512}, {513, 1024}}};
  const Range range = kRanges.at(static_cast<std::size_t>(which));
  const auto length = static_cast<std::uint32_t>(random.between(range.low, range.high));
  return max_length == 0 ? length : std::min(length, max_length);
}

Result<Mix> parse_mix(std::string_view text) {
  Mix mix;
  double sum = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  bool ok = true;
  for (std::size_t i = 0; i < kClasses && ok; ++i) {
    const auto [stop, error] = std::from_chars(at, end, mix.share.at(i));
    ok = error == std::errc() && mix.share.at(i) >= 0 &&
         (i + 1 < kClasses ? stop != end && *stop == '/' : stop == end);
    sum += mix.share.at(i);
    at = stop + 1;
  }
  if (!ok || sum < 99.9 || sum > 100.1) {
    return invalid("bad_mix", fmt::format("'{}' is not a mix: write three percentages that sum to 100, "
                                          "short/medium/long, such as 80/15/5",
                                          text));
  }
  for (double& share : mix.share) share /= sum;
  return mix;
}

}  // namespace tonnage::load
