// SPDX-License-Identifier: Apache-2.0
#include "load/reply_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tonnage::load {
namespace {

constexpr std::size_t kMaxHead = 64 << 10;

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

template <typename Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

Status bad_reply(std::string_view what, std::string_view text) {
  return invalid("bad_reply", fmt::format("{}: '{}'", what, text.substr(0, 80)));
}

}  // namespace

void ReplyParser::reset(bool keep_body) {
  head_.clear();
  reply_ = HttpReply();
  body_left_ = 0;
  has_length_ = in_body_ = false;
  keep_body_ = keep_body;
}

Result<bool> ReplyParser::feed(std::string_view bytes) {
  if (in_body_) return read_body(bytes);
  const std::size_t searched = head_.size() < 3 ? 0 : head_.size() - 3;
  head_.append(bytes);
  const std::size_t end = head_.find("\r\n\r\n", searched);
  if (end == std::string::npos) {
    if (head_.size() > kMaxHead) return bad_reply("headers without an end", head_);
    return false;
  }
  const std::string rest = head_.substr(end + 4);
  head_.resize(end + 2);
  TONNAGE_TRY(read_head());
  in_body_ = true;
  return read_body(rest);
}

Status ReplyParser::read_head() {
  std::string_view text = head_;
  const std::string_view line = text.substr(0, text.find("\r\n"));
  text.remove_prefix(line.size() + 2);
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || !read_number(line.substr(9, 3), reply_.status)) {
    return bad_reply("not a status line", line);
  }
  reply_.keep_alive = line[7] == '1';
  while (!text.empty()) {
    const std::size_t end = text.find("\r\n");
    TONNAGE_TRY(read_header(text.substr(0, end)));
    text.remove_prefix(end + 2);
  }
  const bool is_bodiless = reply_.status == 204 || reply_.status == 304;
  if (!has_length_ && !is_bodiless) return bad_reply("no Content-Length", line);
  return Status();
}

Status ReplyParser::read_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad_reply("not a header", line);
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
  if (same_word(name, "content-length")) {
    if (!read_number(value, body_left_)) return bad_reply("not a length", value);
    has_length_ = true;
  } else if (same_word(name, "connection")) {
    if (same_word(value, "close")) reply_.keep_alive = false;
    if (same_word(value, "keep-alive")) reply_.keep_alive = true;
  } else if (same_word(name, "x-tonnage-reason")) {
    reply_.reason = value;
  } else if (same_word(name, "x-tonnage-truncated-rows")) {
    if (!read_number(value, reply_.truncated)) return bad_reply("not a count", value);
  }
  return Status();
}

Result<bool> ReplyParser::read_body(std::string_view bytes) {
  if (bytes.size() > body_left_) return bad_reply("bytes after the reply", bytes.substr(body_left_));
  body_left_ -= bytes.size();
  if (keep_body_) reply_.body.append(bytes);
  return body_left_ == 0;
}

}  // namespace tonnage::load
