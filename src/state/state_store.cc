// SPDX-License-Identifier: Apache-2.0
#include "state/state_store.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "state/detail/database.h"

namespace tonnage::state {
namespace {

using detail::Database;

constexpr std::string_view kSchema = "1";
// EXCLUSIVE: one server per folder; the second one finds it locked at once. It also spares WAL its
// shared-memory file.
constexpr std::array kSetUp = {
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "INSERT OR IGNORE INTO about VALUES ('schema', '1')",
    "CREATE TABLE IF NOT EXISTS profiles (fingerprint TEXT PRIMARY KEY, profile TEXT NOT NULL) WITHOUT ROWID",
};

Status unusable(std::string detail) { return {Code::kUnavailable, "state_unusable", std::move(detail)}; }

Result<Database> open_with_tables(const std::string& path) {
  TONNAGE_ASSIGN(Database database, Database::open(path));
  for (const char* statement : kSetUp) TONNAGE_TRY(database.run(statement).status());
  TONNAGE_ASSIGN(const auto rows, database.run("SELECT value FROM about WHERE key = 'schema'"));
  if (rows.size() != 1 || rows[0].at(0) != kSchema)
    return unusable("it was written by another version of tonnage");
  return database;
}

Result<Database> open_in(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return unusable(fmt::format("cannot make {}: {}", directory, error.message()));
  return open_with_tables((std::filesystem::path(directory) / "state.sqlite3").string());
}

}  // namespace

struct StateStore::Opened {
  explicit Opened(Database opened) : database(std::move(opened)) {}

  std::optional<std::string> one(const char* statement, std::initializer_list<detail::Value> values) {
    auto rows = database.run(statement, values);
    if (!rows.is_ok() || rows->empty()) return std::nullopt;
    return rows->front().at(0);
  }
  void write(telemetry::Log& log, const char* statement, std::initializer_list<detail::Value> values) {
    if (const Status status = database.run(statement, values).status(); !status.is_ok()) {
      log.warn("state_not_saved", {{"detail", std::string_view(status.detail())}});
    }
  }

  Database database;
};

StateStore::StateStore(std::unique_ptr<Opened> opened, telemetry::Log& log)
    : opened_(std::move(opened)), log_(log) {}
StateStore::~StateStore() = default;

std::unique_ptr<StateStore> StateStore::open(const std::string& directory, telemetry::Log& log) {
  if (!directory.empty()) {
    auto database = open_in(directory);
    if (database.is_ok()) {
      return std::make_unique<StateStore>(std::make_unique<Opened>(std::move(database).value()), log);
    }
    log.warn("state_in_memory", {{"directory", std::string_view(directory)},
                                 {"detail", std::string_view(database.status().detail())},
                                 {"effect", std::string_view("models are profiled again after a restart")}});
  }
  auto memory = open_with_tables(":memory:");
  TONNAGE_CHECK(memory.is_ok(), "SQLite cannot keep a table in memory");
  return std::make_unique<StateStore>(std::make_unique<Opened>(std::move(memory).value()), log);
}

std::optional<std::string> StateStore::load(std::string_view fingerprint) {
  return opened_->one("SELECT profile FROM profiles WHERE fingerprint = ?1", {fingerprint});
}

void StateStore::save(std::string_view fingerprint, std::string_view profile) {
  opened_->write(log_, "INSERT OR REPLACE INTO profiles VALUES (?1, ?2)", {fingerprint, profile});
}

}  // namespace tonnage::state
