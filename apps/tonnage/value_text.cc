// SPDX-License-Identifier: Apache-2.0
#include "value_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace tonnage::app {
namespace {

template <typename T>
std::optional<T> whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Status bad_value(std::string_view text, std::string_view allowed) {
  return invalid("bad_value", fmt::format("'{}' is not allowed; allowed: {}", text, allowed));
}

struct Unit {
  std::string_view name;
  double in_seconds;
};
constexpr std::array<Unit, 4> kUnits = {{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  std::string_view number = text;
  double factor = 1;
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    number = text.substr(0, text.size() - unit.name.size());
    factor = unit.in_seconds;
    break;  // "ms" stands before "s"
  }
  const auto value = whole<double>(number);
  constexpr double kYear = 365.0 * 24 * 3600;
  if (!value || !(*value >= 0 && *value * factor <= kYear)) {
    return bad_value(text, "a time such as 250ms, 30s, 2m or 1h");
  }
  return from_seconds(*value * factor);
}

std::string format_duration(Duration value) {
  if (value % seconds(1) == Duration::zero()) return fmt::format("{}s", value / seconds(1));
  return fmt::format("{}ms", to_millis(value));
}

Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t min, std::uint64_t max) {
  const auto value = whole<std::uint64_t>(text);
  if (value && *value >= min && *value <= max) return *value;
  return bad_value(text, max == UINT64_MAX ? fmt::format("a whole number, at least {}", min)
                                           : fmt::format("a whole number from {} to {}", min, max));
}

Result<double> parse_number(std::string_view text, double min, double max) {
  const auto value = whole<double>(text);
  if (value && *value >= min && *value <= max) return *value;
  return bad_value(text, fmt::format("a number from {} to {}", min, max));
}

Result<bool> parse_switch(std::string_view text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  return bad_value(text, "true or false");
}

Result<std::optional<std::uint16_t>> parse_port(std::string_view text) {
  if (text == "off") return std::optional<std::uint16_t>();
  const auto value = whole<std::uint16_t>(text);
  if (!value) return bad_value(text, "a port from 0 (any free one) to 65535, or off");
  return std::optional<std::uint16_t>(*value);
}

}  // namespace tonnage::app
