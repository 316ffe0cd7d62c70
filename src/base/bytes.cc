// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace tonnage {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 12> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"K", 1024.0}}};

}  // namespace

Bytes scale(Bytes value, double factor) {
  const double product = std::ceil(static_cast<double>(value.count()) * factor);
  if (!(product > 0)) return Bytes();
  if (product >= 18446744073709549568.0) return Bytes::max();
  return Bytes(static_cast<std::uint64_t>(product));
}

Result<Bytes> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (error == std::errc() && number >= 0 && std::isfinite(number)) {
    for (const Unit& known : kUnits) {
      if (unit == known.name && number * known.factor < 1.8e19) {
        return Bytes(static_cast<std::uint64_t>(number * known.factor));
      }
    }
  }
  return invalid("bad_size", fmt::format("'{}' is not an amount of memory: write a number and B, KiB, "
                                         "MiB, GiB, TiB, KB, MB, GB or TB, such as 600MiB",
                                         text));
}

std::string format_bytes(Bytes value) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(value.count());
  std::size_t unit = 0;
  for (; number >= 1024 && unit + 1 < kNames.size(); ++unit) number /= 1024;
  return unit == 0 ? fmt::format("{} B", value.count()) : fmt::format("{:.1f} {}", number, kNames.at(unit));
}

}  // namespace tonnage
