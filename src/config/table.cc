// SPDX-License-Identifier: Apache-2.0
#include "config/table.h"

// toml++ asserts about texts what it goes on to refuse as an error ("[=]"): its assertions are off. NDEBUG
// would make assumptions of them.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace tonnage::config {
namespace {

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

// Copies toml++'s tree, so that no header of it leaves this file.
class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Table table(const toml::table& from) {
    Table made;
    made.file = file_;
    made.line = line_of(from);
    for (const auto& [key, node] : from) {
      made.entries.push_back({std::string(key.str()), value(node)});
    }
    return made;
  }
  const std::optional<Status>& error() const { return error_; }

 private:
  Value value(const toml::node& node) {
    Value made;
    made.line = line_of(node);
    if (const auto* text = node.as_string()) {
      made.data = text->get();
    } else if (const auto* integer = node.as_integer()) {
      made.data = integer->get();
    } else if (const auto* number = node.as_floating_point()) {
      made.data = number->get();
    } else if (const auto* boolean = node.as_boolean()) {
      made.data = boolean->get();
    } else if (const auto* array = node.as_array()) {
      std::vector<Value> values;
      for (const toml::node& element : *array) values.push_back(value(element));
      made.data = std::move(values);
    } else if (const auto* nested = node.as_table()) {
      made.data = table(*nested);
    } else if (!error_) {
      error_ =
          invalid("bad_config", fmt::format("{}:{}: dates and times are not used here", file_, made.line));
    }
    return made;
  }

  const std::string& file_;
  std::optional<Status> error_;
};

// Behind the string that begins at `at`; its end is toml++'s business.
std::size_t skip_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.substr(at, 3) == three;
  const std::string_view end = is_long ? std::string_view(three) : text.substr(at, 1);
  at += end.size();
  while (at < text.size() && text.substr(at, end.size()) != end) {
    if (!is_long && text[at] == '\n') return at;
    at += std::size_t{quote == '"' && text[at] == '\\' ? 2U : 1U};
  }
  at = std::min(text.size(), at + end.size());
  // Up to two quotes before the closing three belong to a long string.
  for (int i = 0; is_long && i < 2 && at < text.size() && text[at] == quote; ++i) ++at;
  return at;
}

// The line of a byte that is no ASCII outside strings and comments, where TOML has none. toml++ ends the
// process at some of them (U+FEBF) instead of refusing them.
std::optional<std::ptrdiff_t> foreign_line(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < text.size()) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) >= 0x80) {
      return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    }
    if (c == '#') {
      at = std::min(text.size(), text.find('\n', at));
    } else {
      at = c == '"' || c == '\'' ? skip_string(text, at) : at + 1;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Table> parse_toml(std::string_view text, const std::string& file) {
  if (const auto line = foreign_line(text)) {
    return invalid(
        "bad_config",
        fmt::format("{}:{}: characters that are not ASCII stand in strings and comments only", file, *line));
  }
  const toml::parse_result parsed = toml::parse(text, file);
  if (!parsed) {
    return invalid("bad_config", fmt::format("{}:{}: {}", file, parsed.error().source().begin.line,
                                             parsed.error().description()));
  }
  Converter converter(file);
  Table table = converter.table(parsed.table());
  if (converter.error()) return *converter.error();
  return table;
}

Result<Table> parse_toml_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Status(Code::kNotFound, "no_file", fmt::format("{} cannot be read", path));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return parse_toml(text, path);
}

}  // namespace tonnage::config
