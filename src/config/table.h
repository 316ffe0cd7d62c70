// SPDX-License-Identifier: Apache-2.0
// Table: a parsed TOML file as plain values, each with the line it came from. Read it through a
// Reader (config/reader.h), which checks types and refuses keys that nobody asked for.
//
// Promises: parse_toml never throws; nesting is bounded (256); dates and times are refused, nothing
// here uses them.
// Threads: values. Fails with: invalid_argument/bad_config (file:line: what is wrong),
// not_found/no_file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace tonnage::config {

struct Entry;

struct Table {
  std::string file;  // as the reader of a message knows it
  int line = 0;
  std::vector<Entry> entries;  // in the order of their names
};

struct Value {
  std::variant<std::string, std::int64_t, double, bool, std::vector<Value>, Table> data;
  int line = 0;
};

struct Entry {
  std::string key;
  Value value;
};

Result<Table> parse_toml(std::string_view text, const std::string& file);
Result<Table> parse_toml_file(const std::string& path);

}  // namespace tonnage::config
