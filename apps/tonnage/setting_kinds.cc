// SPDX-License-Identifier: Apache-2.0
#include "setting_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tonnage::app {
namespace {

// A setting that parses text into `into` and prints it back.
template <typename T, typename Parse, typename Show>
Setting make(Name name, T& into, Parse parse, Show show) {
  Setting setting{std::move(name.flag), std::move(name.value_name), std::move(name.help), false, {}, {}};
  setting.set = [&into, parse](std::string_view text) {
    auto parsed = parse(text);
    if (!parsed) return parsed.status();
    into = std::move(parsed).value();
    return Status::ok();
  };
  setting.show = [&into, show] { return show(into); };
  return setting;
}

}  // namespace

Setting text_setting(Name name, std::string& into) {
  return make(
      std::move(name), into, [](std::string_view text) { return Result<std::string>(std::string(text)); },
      [](const std::string& value) { return value; });
}

Setting switch_setting(Name name, bool& into, bool when_given) {
  return make(
      std::move(name), into,
      [when_given](std::string_view text) -> Result<bool> {
        TONNAGE_ASSIGN(const bool given, parse_switch(text));
        return given == when_given;
      },
      [when_given](bool value) { return std::string(value == when_given ? "true" : "false"); });
}

Setting bytes_setting(Name name, Bytes& into) {
  return make(
      std::move(name), into, [](std::string_view text) { return parse_bytes(text); },
      [](Bytes value) { return std::to_string(value.count()); });
}

Setting duration_setting(Name name, Duration& into) {
  return make(
      std::move(name), into, [](std::string_view text) { return parse_duration(text); }, format_duration);
}

Setting number_setting(Name name, double& into, double min, double max) {
  return make(
      std::move(name), into, [min, max](std::string_view text) { return parse_number(text, min, max); },
      [](double value) { return fmt::format("{}", value); });
}

Setting port_setting(Name name, std::optional<std::uint16_t>& into) {
  return make(
      std::move(name), into, [](std::string_view text) { return parse_port(text); },
      [](std::optional<std::uint16_t> port) { return port ? std::to_string(*port) : std::string("off"); });
}

Setting word_setting(Name name, std::string& into, std::initializer_list<const char*> allowed) {
  const std::vector<std::string> words(allowed.begin(), allowed.end());
  return make(
      std::move(name), into,
      [words](std::string_view text) -> Result<std::string> {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string(text);
        return invalid("bad_value",
                       fmt::format("'{}' is not allowed; allowed: {}", text, fmt::join(words, ", ")));
      },
      [](const std::string& value) { return value; });
}

}  // namespace tonnage::app
