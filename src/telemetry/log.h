// SPDX-License-Identifier: Apache-2.0
// Log: JSON lines, one stable event word each, then keys and values. Never payload bytes.
//
// Promises:
//  1. A line is written whole, by a thread of the log's own: write() never waits for a disk or a pipe.
//     Where the sink is too slow, lines are left out and counted in the next one (`log_lines_lost`).
//  2. A warning with the same event repeats at most once a second and says how many were left out
//     (`suppressed`). Errors and infos are always written.
//  3. Everything written before the Log goes away is in the file.
// Threads: any. Owns: the sink's thread and file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace tonnage::telemetry {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };

struct Field {
  std::string_view key;
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;
};

class Log {
 public:
  virtual ~Log() = default;
  virtual void write(Level level, std::string_view event, std::initializer_list<Field> fields) = 0;

  void info(std::string_view event, std::initializer_list<Field> fields) {
    write(Level::kInfo, event, fields);
  }
  void warn(std::string_view event, std::initializer_list<Field> fields) {
    write(Level::kWarning, event, fields);
  }
  void error(std::string_view event, std::initializer_list<Field> fields) {
    write(Level::kError, event, fields);
  }
};

// Lines to standard error, or to a rotated file when a path is given.
struct LogOptions {
  Level level = Level::kInfo;
  std::string file;                        // empty: standard error
  std::uint64_t rotate_bytes = 64u << 20;  // then file.1 … file.3
  // Wall clock of the lines and of the warning limit; empty: the system's.
  std::function<std::chrono::system_clock::time_point()> clock;
};
std::unique_ptr<Log> make_log(const LogOptions& options);
// Swallows everything; for tests and tools.
std::unique_ptr<Log> make_null_log();

}  // namespace tonnage::telemetry
