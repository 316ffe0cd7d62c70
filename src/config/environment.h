// SPDX-License-Identifier: Apache-2.0
// Environment: the variables of this process, read once. The only place that looks at them.
// Threads: read at start, then a value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tonnage::config {

class Environment {
 public:
  static Environment of_process();
  // For tests.
  explicit Environment(std::map<std::string, std::string> variables)
      : variables_(variables.begin(), variables.end()) {}

  std::optional<std::string> get(std::string_view name) const;
  // True when any variable begins so.
  bool has_prefix(std::string_view prefix) const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

// "http-port" → "TONNAGE_HTTP_PORT".
std::string variable_name(std::string_view flag);

}  // namespace tonnage::config
