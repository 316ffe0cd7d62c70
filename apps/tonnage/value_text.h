// SPDX-License-Identifier: Apache-2.0
// Values as people write them on a command line, and back. Errors say what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace tonnage::app {

// "250ms", "30s", "2m", "1h"; a plain number means seconds.
Result<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration value);

Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t min, std::uint64_t max);
Result<double> parse_number(std::string_view text, double min, double max);
// true, yes, on, 1 and their opposites.
Result<bool> parse_switch(std::string_view text);
// A port number, or "off".
Result<std::optional<std::uint16_t>> parse_port(std::string_view text);

}  // namespace tonnage::app
