// SPDX-License-Identifier: Apache-2.0
// Makers of Settings: a typed variable becomes a row of the table.
#pragma once

#include <concepts>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "settings.h"
#include "value_text.h"

namespace tonnage::app {

struct Name {
  std::string flag;
  std::string value_name;
  std::string help;
};

Setting text_setting(Name name, std::string& into);
Setting switch_setting(Name name, bool& into, bool when_given = true);
Setting bytes_setting(Name name, Bytes& into);
Setting duration_setting(Name name, Duration& into);
Setting number_setting(Name name, double& into, double min, double max);
Setting port_setting(Name name, std::optional<std::uint16_t>& into);
Setting word_setting(Name name, std::string& into, std::initializer_list<const char*> allowed);

// --route and --precision.
void add_route(Settings& settings, model::RouteChoice& into);

template <std::unsigned_integral T>
Setting count_setting(Name name, T& into, std::uint64_t min = 0,
                      std::uint64_t max = std::numeric_limits<T>::max()) {
  Setting setting{std::move(name.flag), std::move(name.value_name), std::move(name.help), false, {}, {}};
  setting.set = [&into, min, max](std::string_view text) {
    TONNAGE_ASSIGN(const std::uint64_t value, parse_count(text, min, max));
    into = static_cast<T>(value);
    return Status::ok();
  };
  setting.show = [&into] { return std::to_string(into); };
  return setting;
}

}  // namespace tonnage::app
