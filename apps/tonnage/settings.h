// SPDX-License-Identifier: Apache-2.0
// Settings: what a subcommand can be told, as one table. The same table gives the flags, the
// TONNAGE_… variables, the keys of --config, --print-config and docs/config.md.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/environment.h"
#include "config/table.h"
#include "options.h"

namespace tonnage::app {

struct Setting {
  std::string flag;        // "http-port"; the word itself for a positional argument
  std::string value_name;  // "PORT"; empty: a switch
  std::string help;
  bool is_positional = false;
  std::function<Status(std::string_view)> set;
  std::function<std::string()> show;
};
using Settings = std::vector<Setting>;

// Bound to `options`, which must outlive the table.
Settings serve_settings(ServeOptions& options);
Settings inspect_settings(InspectOptions& options);
Settings profile_settings(ProfileOptions& options);
Settings load_settings(LoadOptions& options);

// Where values come from: the later wins.
struct Layers {
  const config::Table* file = nullptr;
  const config::Environment* environment = nullptr;
  std::map<std::string, std::string> flags;
};
// By flag: "default", "server.toml:3", "TONNAGE_HTTP_PORT", "--http-port".
using Origins = std::map<std::string, std::string>;

// Sets every value that some layer names. Error: invalid_argument/bad_option or bad_config, naming
// where the value came from.
Result<Origins> resolve(const Settings& settings, const Layers& layers);

// TOML, one line per setting, each with its origin.
std::string config_text(const Settings& settings, const Origins& origins);

}  // namespace tonnage::app
