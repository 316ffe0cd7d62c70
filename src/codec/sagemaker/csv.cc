// SPDX-License-Identifier: Apache-2.0
#include "codec/sagemaker/csv.h"

#include <fmt/format.h>

#include <algorithm>

namespace tonnage::codec::sagemaker {

bool CsvReader::fail(std::string_view why) {
  status_ = invalid("bad_csv", fmt::format("row {}, column {}: {}", number_, cells_.size() + 1, why));
  return false;
}

bool CsvReader::next() {
  if (!status_.is_ok()) return false;
  if (rest_.find_first_not_of("\r\n") == std::string_view::npos) return false;  // empty lines end a file
  cells_.clear();
  unquoted_.clear();
  ++number_;
  const std::string_view begin = rest_;
  for (bool is_last = false; !is_last;) {
    if (rest_.starts_with('"')) {
      if (!take_quoted()) return false;
    } else {
      take_plain();
    }
    const std::size_t taken = begin.size() - rest_.size();
    if (!end_of_cell(is_last)) return false;
    line_ = begin.substr(0, taken);
  }
  return true;
}

void CsvReader::take_plain() {
  std::size_t size = rest_.find_first_of(",\n");
  if (size == std::string_view::npos) size = rest_.size();
  const bool is_crlf = size > 0 && size < rest_.size() && rest_[size] == '\n' && rest_[size - 1] == '\r';
  cells_.push_back({rest_.substr(0, is_crlf ? size - 1 : size), false});
  rest_.remove_prefix(is_crlf ? size - 1 : size);
}

bool CsvReader::take_quoted() {
  std::string_view body = rest_.substr(1);
  std::size_t end = body.find('"');
  if (end != std::string_view::npos && body.substr(end, 2) != "\"\"") {
    cells_.push_back({body.substr(0, end), true});
    rest_ = body.substr(end + 1);
    return true;
  }
  std::string& text = unquoted_.emplace_back();
  while (end != std::string_view::npos) {
    text += body.substr(0, end);
    body.remove_prefix(end + 1);
    if (!body.starts_with('"')) {
      cells_.push_back({text, true});
      rest_ = body;
      return true;
    }
    text += '"';
    body.remove_prefix(1);
    end = body.find('"');
  }
  return fail("a quote is opened and not closed");
}

bool CsvReader::end_of_cell(bool& is_last) {
  is_last = true;
  if (rest_.empty()) return true;
  if (rest_.starts_with(',')) {
    is_last = false;
    rest_.remove_prefix(1);
    return true;
  }
  if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
  if (rest_.starts_with('\n')) {
    rest_.remove_prefix(1);
    return true;
  }
  cells_.pop_back();
  return fail("text follows the closing quote");
}

void append_csv_cell(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace tonnage::codec::sagemaker
