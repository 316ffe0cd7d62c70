// SPDX-License-Identifier: Apache-2.0
// A SQLite connection; the only door to sqlite3.h.
// Threads: one. Owns: the connection. Fails with: unavailable/state_unusable, with SQLite's own text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace tonnage::state::detail {

using Value = std::variant<std::int64_t, std::string_view>;
using Row = std::vector<std::string>;  // every column as text

class Database {
 public:
  static Result<Database> open(const std::string& path);  // ":memory:" never touches a disk
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // One statement; `values` take the places of ?1, ?2 …
  Result<std::vector<Row>> run(const char* statement, std::initializer_list<Value> values = {});

 private:
  struct Connection;
  explicit Database(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace tonnage::state::detail
