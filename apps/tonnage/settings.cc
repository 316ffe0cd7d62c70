// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "config/reader.h"

namespace tonnage::app {
namespace {

std::string key_of(std::string_view flag) {
  std::string key(flag);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// Kubernetes gives every pod variables like TONNAGE_HTTP_PORT=tcp://10.0.0.1:80 when a service is
// called tonnage-http. Nobody means those.
bool is_service_link(std::string_view value) {
  return value.starts_with("tcp://") || value.starts_with("udp://");
}

struct Found {
  std::string value;
  std::string origin;
};

std::optional<Found> find(const Setting& setting, const Layers& layers,
                          const std::map<std::string, config::ScalarText>& file) {
  if (const auto flag = layers.flags.find(setting.flag); flag != layers.flags.end()) {
    return Found{flag->second, setting.is_positional ? setting.flag : "--" + setting.flag};
  }
  const std::string variable = config::variable_name(setting.flag);
  if (layers.environment != nullptr) {
    const auto value = layers.environment->get(variable);
    if (value && !is_service_link(*value)) return Found{*value, variable};
  }
  if (const auto found = file.find(setting.flag); found != file.end()) {
    return Found{found->second.text, fmt::format("{}:{}", layers.file->file, found->second.line)};
  }
  return std::nullopt;
}

}  // namespace

Result<Origins> resolve(const Settings& settings, const Layers& layers) {
  std::map<std::string, config::ScalarText> file;
  if (layers.file != nullptr) {
    config::Reader reader(*layers.file);
    for (const Setting& setting : settings) {
      if (auto value = reader.scalar(key_of(setting.flag))) file.emplace(setting.flag, std::move(*value));
    }
    TONNAGE_TRY(reader.finish());
  }
  Origins origins;
  for (const Setting& setting : settings) {
    const auto found = find(setting, layers, file);
    origins[setting.flag] = found ? found->origin : "default";
    if (!found) continue;
    const Status status = setting.set(found->value);
    if (!status.is_ok()) return invalid("bad_option", fmt::format("{}: {}", found->origin, status.detail()));
  }
  return origins;
}

std::string config_text(const Settings& settings, const Origins& origins) {
  std::string out;
  for (const Setting& setting : settings) {
    fmt::format_to(std::back_inserter(out), "{} = {}  # {}\n", key_of(setting.flag),
                   json_string(setting.show()), origins.at(setting.flag));
  }
  return out;
}

}  // namespace tonnage::app
