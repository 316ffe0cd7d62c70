// SPDX-License-Identifier: Apache-2.0
#include "config/environment.h"

#include <unistd.h>

namespace tonnage::config {

Environment Environment::of_process() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

bool Environment::has_prefix(std::string_view prefix) const {
  const auto found = variables_.lower_bound(prefix);
  return found != variables_.end() && found->first.starts_with(prefix);
}

std::string variable_name(std::string_view flag) {
  std::string name = "TONNAGE_";
  for (const char c : flag) {
    if (c == '-') {
      name += '_';
    } else {
      name += (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return name;
}

}  // namespace tonnage::config
