// SPDX-License-Identifier: Apache-2.0
#include "load/texts.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tonnage::load {
namespace {

Status bad_line(std::string_view file, std::size_t number, std::string_view found) {
  return invalid("bad_texts",
                 fmt::format("{}:{}: expected a JSON string or {{\"text\": \"…\", \"tokens\": n}}, "
                             "found {}",
                             file, number, found.substr(0, 60)));
}

}  // namespace

void Texts::add(Text text) {
  of_class.at(static_cast<std::size_t>(class_of(text.tokens)))
      .push_back(static_cast<std::uint32_t>(all.size()));
  all.push_back(std::move(text));
}

std::uint32_t estimate_tokens(std::string_view text) {
  std::uint32_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    words += !is_space && !inside ? 1U : 0U;
    inside = !is_space;
  }
  return static_cast<std::uint32_t>(std::ceil(words * 1.3)) + 2;  // [CLS] and [SEP]
}

Result<Texts> parse_texts(std::string_view lines, std::string_view file_name) {
  Texts texts;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto value = nlohmann::json::parse(line, nullptr, false);
    const nlohmann::json* text = &value;
    if (value.is_object() && value.contains("text")) text = &value["text"];
    if (!text->is_string()) return bad_line(file_name, number, line);
    Text entry{text->get<std::string>(), 0};
    entry.tokens = estimate_tokens(entry.text);
    if (value.is_object() && value.contains("tokens")) {
      if (!value["tokens"].is_number_unsigned()) return bad_line(file_name, number, line);
      entry.tokens = value["tokens"].get<std::uint32_t>();
    }
    texts.add(std::move(entry));
  }
  if (texts.all.empty()) return invalid("bad_texts", fmt::format("{}: no texts in it", file_name));
  return texts;
}

Result<Texts> read_texts(const std::string& file_name) {
  std::ifstream file(file_name, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  if (!file) return invalid("bad_texts", fmt::format("{}: cannot be read", file_name));
  return parse_texts(content.str(), file_name);
}

}  // namespace tonnage::load
