// SPDX-License-Identifier: Apache-2.0
#include "state/detail/database.h"

#include <sqlite3.h>

#include <utility>

namespace tonnage::state::detail {
namespace {

struct CloseStatement {
  void operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, CloseStatement>;

Status unusable(sqlite3* connection) {
  return {Code::kUnavailable, "state_unusable",
          connection == nullptr ? "SQLite has no memory" : ::sqlite3_errmsg(connection)};
}

int bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return ::sqlite3_bind_int64(statement, index, *number);
  const auto text = std::get<std::string_view>(value);
  // A null destructor says "not copied": the caller's text outlives the statement.
  return ::sqlite3_bind_text64(statement, index, text.data(), text.size(), nullptr, SQLITE_UTF8);
}

Row row_of(sqlite3_stmt* statement) {
  Row row;
  for (int i = 0; i < ::sqlite3_column_count(statement); ++i) {
    const auto* text = static_cast<const char*>(::sqlite3_column_blob(statement, i));
    const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement, i));
    row.emplace_back(text == nullptr ? std::string() : std::string(text, size));
  }
  return row;
}

}  // namespace

struct Database::Connection {
  sqlite3* handle = nullptr;
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::sqlite3_close(handle); }
};

Database::Database(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(const std::string& path) {
  auto connection = std::make_unique<Connection>();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (::sqlite3_open_v2(path.c_str(), &connection->handle, flags, nullptr) != SQLITE_OK) {
    return unusable(connection->handle);
  }
  return Database(std::move(connection));
}

Result<std::vector<Row>> Database::run(const char* text, std::initializer_list<Value> values) {
  sqlite3* const connection = connection_->handle;
  sqlite3_stmt* raw = nullptr;
  if (::sqlite3_prepare_v2(connection, text, -1, &raw, nullptr) != SQLITE_OK) return unusable(connection);
  const Statement statement(raw);
  int index = 0;
  for (const Value& value : values) {
    if (bind(raw, ++index, value) != SQLITE_OK) return unusable(connection);
  }
  std::vector<Row> rows;
  int step = ::sqlite3_step(raw);
  for (; step == SQLITE_ROW; step = ::sqlite3_step(raw)) rows.push_back(row_of(raw));
  if (step != SQLITE_DONE) return unusable(connection);
  return rows;
}

}  // namespace tonnage::state::detail
