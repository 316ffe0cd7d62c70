// SPDX-License-Identifier: Apache-2.0
#include "config/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/nearest.h"

namespace tonnage::config {
namespace {

std::string_view type_name(const Value& value) {
  struct Visitor {
    std::string_view operator()(const std::string&) const { return "a string"; }
    std::string_view operator()(std::int64_t) const { return "an integer"; }
    std::string_view operator()(double) const { return "a number"; }
    std::string_view operator()(bool) const { return "a boolean"; }
    std::string_view operator()(const std::vector<Value>&) const { return "an array"; }
    std::string_view operator()(const Table&) const { return "a table"; }
  };
  return std::visit(Visitor{}, value.data);
}

std::optional<double> as_number(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  return std::nullopt;
}

std::optional<std::string> scalar_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value.data)) return fmt::format("{}", *number);
  if (const auto* boolean = std::get_if<bool>(&value.data)) return *boolean ? "true" : "false";
  return std::nullopt;
}

std::string range_text(std::int64_t min, std::int64_t max) {
  if (max == std::numeric_limits<std::int64_t>::max()) {
    if (min == std::numeric_limits<std::int64_t>::min()) return "any integer";
    return fmt::format("at least {}", min);
  }
  return fmt::format("{} to {}", min, max);
}

}  // namespace

Reader::Reader(const Table& table, std::string path) : table_(table), path_(std::move(path)) {}

bool Reader::has(std::string_view key) const {
  return std::any_of(table_.entries.begin(), table_.entries.end(),
                     [key](const Entry& e) { return e.key == key; });
}

const Value* Reader::take(std::string_view key) {
  asked_.emplace_back(key);
  for (const Entry& entry : table_.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

std::string Reader::full_name(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Reader::keep_error(int line, std::string_view text) {
  if (!error_) error_ = invalid("bad_config", fmt::format("{}:{}: {}", table_.file, line, text));
}

void Reader::fail(std::string_view key, std::string_view what) {
  int line = table_.line;
  for (const Entry& entry : table_.entries) {
    if (entry.key == key) line = entry.value.line;
  }
  keep_error(line, fmt::format("'{}' {}", full_name(key), what));
}

void Reader::wrong_type(std::string_view key, const Value& value, std::string_view wanted) {
  keep_error(value.line, fmt::format("'{}' is {}; it must be {}", full_name(key), type_name(value), wanted));
}

void Reader::text(std::string_view key, std::string& into) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (const auto* found = std::get_if<std::string>(&value->data)) {
    into = *found;
  } else {
    wrong_type(key, *value, "a string");
  }
}

void Reader::boolean(std::string_view key, bool& into) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (const auto* found = std::get_if<bool>(&value->data)) {
    into = *found;
  } else {
    wrong_type(key, *value, "true or false");
  }
}

std::optional<ScalarText> Reader::scalar(std::string_view key) {
  const Value* value = take(key);
  if (value == nullptr) return std::nullopt;
  auto text = scalar_text(*value);
  if (text) return ScalarText{std::move(*text), value->line};
  wrong_type(key, *value, "a string, a number or a boolean");
  return std::nullopt;
}

void Reader::number(std::string_view key, double& into, double min, double max) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto found = as_number(*value);
  if (!found) return wrong_type(key, *value, "a number");
  // Written so that NaN is refused as well.
  if (!(*found >= min && *found <= max)) {
    return keep_error(value->line,
                      fmt::format("'{}' is {}; allowed: {} to {}", full_name(key), *found, min, max));
  }
  into = *found;
}

std::optional<std::int64_t> Reader::integer_value(std::string_view key, std::int64_t min, std::int64_t max) {
  const Value* value = take(key);
  if (value == nullptr) return std::nullopt;
  const auto* found = std::get_if<std::int64_t>(&value->data);
  if (found == nullptr) {
    wrong_type(key, *value, fmt::format("an integer ({})", range_text(min, max)));
    return std::nullopt;
  }
  if (*found < min || *found > max) {
    keep_error(value->line,
               fmt::format("'{}' is {}; allowed: {}", full_name(key), *found, range_text(min, max)));
    return std::nullopt;
  }
  return *found;
}

std::optional<std::vector<std::int64_t>> Reader::integer_values(std::string_view key, std::int64_t min,
                                                                std::int64_t max) {
  const Value* value = take(key);
  if (value == nullptr) return std::nullopt;
  const auto* array = std::get_if<std::vector<Value>>(&value->data);
  if (array == nullptr) {
    wrong_type(key, *value, "an array of integers");
    return std::nullopt;
  }
  std::vector<std::int64_t> found;
  for (const Value& element : *array) {
    const auto* integer = std::get_if<std::int64_t>(&element.data);
    if (integer == nullptr || *integer < min || *integer > max) {
      keep_error(
          element.line,
          fmt::format("'{}' holds {}; each element must be an integer ({})", full_name(key),
                      integer == nullptr ? std::string(type_name(element)) : fmt::format("{}", *integer),
                      range_text(min, max)));
      return std::nullopt;
    }
    found.push_back(*integer);
  }
  return found;
}

void Reader::bytes(std::string_view key, Bytes& into) {
  const Value* value = take(key);
  if (value == nullptr) return;
  if (const auto* integer = std::get_if<std::int64_t>(&value->data); integer != nullptr && *integer >= 0) {
    into = Bytes(static_cast<std::uint64_t>(*integer));
    return;
  }
  const auto* text = std::get_if<std::string>(&value->data);
  if (text == nullptr) return wrong_type(key, *value, "a size such as \"64MiB\" or a number of bytes");
  const Result<Bytes> parsed = parse_bytes(*text);
  if (!parsed)
    return keep_error(value->line, fmt::format("'{}': {}", full_name(key), parsed.status().detail()));
  into = *parsed;
}

void Reader::duration(std::string_view key, Duration unit, Duration& into) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto found = as_number(*value);
  if (!found) return wrong_type(key, *value, "a number");
  constexpr double kYearSeconds = 365.0 * 24 * 3600;
  const double in_seconds = *found * to_seconds(unit);
  if (!(in_seconds >= 0 && in_seconds <= kYearSeconds)) {
    return keep_error(value->line, fmt::format("'{}' is {}; allowed: zero or more, at most a year",
                                               full_name(key), *found));
  }
  into = from_seconds(in_seconds);
}

std::optional<std::ptrdiff_t> Reader::choice_index(std::string_view key,
                                                   const std::vector<std::string>& allowed) {
  const Value* value = take(key);
  if (value == nullptr) return std::nullopt;
  const auto* found = std::get_if<std::string>(&value->data);
  if (found == nullptr) {
    wrong_type(key, *value, fmt::format("one of \"{}\"", fmt::join(allowed, "\", \"")));
    return std::nullopt;
  }
  const auto at = std::find(allowed.begin(), allowed.end(), *found);
  if (at != allowed.end()) return at - allowed.begin();
  keep_error(value->line, fmt::format("'{}' is \"{}\"; allowed: \"{}\"", full_name(key), *found,
                                      fmt::join(allowed, "\", \"")));
  return std::nullopt;
}

void Reader::texts(std::string_view key, std::vector<std::string>& into) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto* array = std::get_if<std::vector<Value>>(&value->data);
  if (array == nullptr) return wrong_type(key, *value, "an array of strings");
  std::vector<std::string> found;
  for (const Value& element : *array) {
    const auto* text = std::get_if<std::string>(&element.data);
    if (text == nullptr) return wrong_type(key, element, "an array of strings");
    found.push_back(*text);
  }
  into = std::move(found);
}

void Reader::read_nested(const Table& nested, std::string_view key,
                         const std::function<void(Reader&)>& read) {
  Reader reader(nested, full_name(key));
  read(reader);
  const Status status = reader.finish();
  if (!status.is_ok() && !error_) error_ = status;
}

void Reader::table(std::string_view key, const std::function<void(Reader&)>& read) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto* nested = std::get_if<Table>(&value->data);
  if (nested == nullptr) return wrong_type(key, *value, fmt::format("a table [{}]", full_name(key)));
  read_nested(*nested, key, read);
}

void Reader::tables(std::string_view key, const std::function<void(Reader&)>& read) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const std::string wanted = fmt::format("an array of tables [[{}]]", full_name(key));
  const auto* array = std::get_if<std::vector<Value>>(&value->data);
  if (array == nullptr) return wrong_type(key, *value, wanted);
  for (std::size_t i = 0; i < array->size(); ++i) {
    const auto* nested = std::get_if<Table>(&(*array)[i].data);
    if (nested == nullptr) return wrong_type(key, (*array)[i], wanted);
    read_nested(*nested, fmt::format("{}[{}]", key, i), read);
  }
}

void Reader::free_table(std::string_view key, std::map<std::string, std::string>& into) {
  const Value* value = take(key);
  if (value == nullptr) return;
  const auto* nested = std::get_if<Table>(&value->data);
  if (nested == nullptr) return wrong_type(key, *value, fmt::format("a table [{}]", full_name(key)));
  for (const Entry& entry : nested->entries) {
    const auto text = scalar_text(entry.value);
    if (!text) {
      return wrong_type(fmt::format("{}.{}", key, entry.key), entry.value, "a string, a number or a boolean");
    }
    into[entry.key] = *text;
  }
}

Status Reader::finish() {
  if (error_) return *error_;
  for (const Entry& entry : table_.entries) {
    if (std::find(asked_.begin(), asked_.end(), entry.key) != asked_.end()) continue;
    keep_error(entry.value.line,
               fmt::format("unknown key '{}'; {}", full_name(entry.key), suggestion(entry.key, asked_)));
    return *error_;
  }
  return Status::ok();
}

}  // namespace tonnage::config
