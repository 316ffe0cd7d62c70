// SPDX-License-Identifier: Apache-2.0
// Reader: takes typed keys out of a Table; what is left over at the end is an error.
//
// Promises:
//  1. An absent key leaves its target, and so the default, alone.
//  2. The first thing wrong is kept and told by finish(): file:line, the key, what was found, what is
//     allowed. Later calls are harmless.
//  3. finish() refuses a key that no call asked for and names the nearest one that exists.
// Threads: one. The Table must outlive the Reader. Fails with: invalid_argument/bad_config.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
#include "config/table.h"

namespace tonnage::config {

// A string, number or boolean as its text.
struct ScalarText {
  std::string text;
  int line = 0;
};

class Reader {
 public:
  // `path` names a nested table in messages: "batching".
  explicit Reader(const Table& table, std::string path = {});

  bool has(std::string_view key) const;

  void text(std::string_view key, std::string& into);
  void boolean(std::string_view key, bool& into);
  void number(std::string_view key, double& into, double min, double max);
  template <std::integral T>
  void integer(std::string_view key, T& into, std::int64_t min, std::int64_t max) {
    if (const auto found = integer_value(key, min, max)) into = static_cast<T>(*found);
  }
  // Whatever scalar it is; for keys whose owner reads text.
  std::optional<ScalarText> scalar(std::string_view key);
  // A text with a unit ("64MiB") or a plain number of bytes.
  void bytes(std::string_view key, Bytes& into);
  // A number whose unit is in the key's name: max_wait_ms, max_queue_s.
  void duration(std::string_view key, Duration unit, Duration& into);
  // One of a few words.
  template <typename E>
  void choice(std::string_view key, E& into, std::initializer_list<std::pair<std::string_view, E>> words) {
    std::vector<std::string> allowed;
    for (const auto& [word, value] : words) allowed.emplace_back(word);
    if (const auto index = choice_index(key, allowed)) into = (words.begin() + *index)->second;
  }

  void texts(std::string_view key, std::vector<std::string>& into);
  template <std::integral T>
  void integers(std::string_view key, std::vector<T>& into, std::int64_t min, std::int64_t max) {
    if (const auto found = integer_values(key, min, max)) {
      into.clear();
      for (const std::int64_t value : *found) into.push_back(static_cast<T>(value));
    }
  }

  // [key]; not called when absent. Unknown keys inside are refused afterwards.
  void table(std::string_view key, const std::function<void(Reader&)>& read);
  // [[key]], once per element.
  void tables(std::string_view key, const std::function<void(Reader&)>& read);
  // [key] with free names: strings, and numbers and booleans as their text.
  void free_table(std::string_view key, std::map<std::string, std::string>& into);

  // An error about `key` that the caller found; `what` completes "file:line: 'key' …".
  void fail(std::string_view key, std::string_view what);
  // True when everything so far was right.
  bool is_ok() const { return !error_; }
  Status finish();

 private:
  const Value* take(std::string_view key);
  void wrong_type(std::string_view key, const Value& value, std::string_view wanted);
  std::optional<std::int64_t> integer_value(std::string_view key, std::int64_t min, std::int64_t max);
  std::optional<std::vector<std::int64_t>> integer_values(std::string_view key, std::int64_t min,
                                                          std::int64_t max);
  std::optional<std::ptrdiff_t> choice_index(std::string_view key, const std::vector<std::string>& allowed);
  void read_nested(const Table& nested, std::string_view key, const std::function<void(Reader&)>& read);
  std::string full_name(std::string_view key) const;
  void keep_error(int line, std::string_view text);

  const Table& table_;
  std::string path_;
  std::vector<std::string> asked_;
  std::optional<Status> error_;
};

}  // namespace tonnage::config
