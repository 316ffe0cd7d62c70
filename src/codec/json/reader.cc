// SPDX-License-Identifier: Apache-2.0
#include "codec/json/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "codec/decoded.h"

namespace tonnage::codec {
namespace {

static_assert(kMaxJsonDepth <= 64, "one bit per level");

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0U | (code >> 6U));
    put(0x80U | (code & 0x3fU));
  } else if (code < 0x10000) {
    put(0xe0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3fU));
    put(0x80U | (code & 0x3fU));
  } else {
    put(0xf0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3fU));
    put(0x80U | ((code >> 6U) & 0x3fU));
    put(0x80U | (code & 0x3fU));
  }
}

}  // namespace

JsonReader::JsonReader(std::string_view text) : text_(text) {
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    status_ = invalid("bad_json", "the JSON text is not valid UTF-8");
  }
}

bool JsonReader::fail(std::string_view expected) {
  if (status_.is_ok()) {
    status_ = invalid("bad_json",
                      fmt::format("the JSON text is malformed at byte {}: {} is expected", at_, expected));
  }
  return false;
}

void JsonReader::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++at_;
  }
}

JsonKind JsonReader::peek() {
  if (!is_ok()) return JsonKind::kNothing;
  skip_space();
  if (at_ == text_.size()) return JsonKind::kNothing;
  switch (text_[at_]) {
    case '{': return JsonKind::kObject;
    case '[': return JsonKind::kArray;
    case '"': return JsonKind::kString;
    case 't':
    case 'f': return JsonKind::kBool;
    case 'n': return JsonKind::kNull;
    default: return text_[at_] == '-' || is_digit(text_[at_]) ? JsonKind::kNumber : JsonKind::kNothing;
  }
}

bool JsonReader::enter(char open, bool is_object) {
  if (!is_ok()) return false;
  skip_space();
  if (at_ == text_.size() || text_[at_] != open) return fail(is_object ? "an object" : "an array");
  if (depth_ == kMaxJsonDepth) {
    status_ = invalid("json_depth", fmt::format("the JSON text is nested deeper than {} levels at byte {}",
                                                kMaxJsonDepth, at_));
    return false;
  }
  ++at_;
  ++depth_;
  started_ <<= 1U;
  objects_ = (objects_ << 1U) | (is_object ? 1U : 0U);
  return true;
}

bool JsonReader::enter_object() { return enter('{', true); }
bool JsonReader::enter_array() { return enter('[', false); }

// True when an item follows; at the end of the container leaves it.
bool JsonReader::next_item(char close) {
  if (!is_ok()) return false;
  skip_space();
  if (at_ == text_.size()) return fail(close == '}' ? "'}'" : "']'");
  const bool is_first = (started_ & 1U) == 0;
  if (text_[at_] == close) {
    ++at_;
    --depth_;
    started_ >>= 1U;
    objects_ >>= 1U;
    return false;
  }
  if (!is_first) {
    if (text_[at_] != ',') return fail(close == '}' ? "',' or '}'" : "',' or ']'");
    ++at_;
  }
  started_ |= 1U;
  return true;
}

bool JsonReader::next_element() { return next_item(']'); }

bool JsonReader::next_key(std::string_view& key) {
  if (!next_item('}')) return false;
  if (!read_string(key)) return false;
  skip_space();
  if (at_ == text_.size() || text_[at_] != ':') return fail("':'");
  ++at_;
  return true;
}

bool JsonReader::read_string(std::string_view& text) {
  if (peek() != JsonKind::kString) return fail("a string");
  const std::size_t begin = ++at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') {
      text = text_.substr(begin, at_ - begin);
      ++at_;
      return true;
    }
    if (c == '\\') {
      unescaped_.assign(text_, begin, at_ - begin);
      return read_escaped(text);
    }
    if (is_control(c)) return fail("an escape for a control character");
  }
  return fail("'\"'");
}

bool JsonReader::read_escaped(std::string_view& text) {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (is_control(c)) return fail("an escape for a control character");
    ++at_;
    if (c == '"') {
      text = unescaped_;
      return true;
    }
    if (c != '\\') {
      unescaped_ += c;
    } else if (!append_escape()) {
      return false;
    }
  }
  return fail("'\"'");
}

bool JsonReader::append_escape() {
  if (at_ == text_.size()) return fail("an escape");
  const char c = text_[at_];
  ++at_;
  switch (c) {
    case '"':
    case '\\':
    case '/': unescaped_ += c; return true;
    case 'b': unescaped_ += '\b'; return true;
    case 'f': unescaped_ += '\f'; return true;
    case 'n': unescaped_ += '\n'; return true;
    case 'r': unescaped_ += '\r'; return true;
    case 't': unescaped_ += '\t'; return true;
    case 'u': return append_code_point();
    default: --at_; return fail("an escape");
  }
}

bool JsonReader::append_code_point() {
  std::uint32_t code = 0;
  if (!read_hex(code)) return false;
  if (code >= 0xdc00 && code < 0xe000) return fail("a pair of surrogates");
  if (code >= 0xd800 && code < 0xdc00) {
    std::uint32_t low = 0;
    if (text_.substr(at_, 2) != "\\u") return fail("a pair of surrogates");
    at_ += 2;
    if (!read_hex(low)) return false;
    if (low < 0xdc00 || low >= 0xe000) return fail("a pair of surrogates");
    code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
  }
  append_utf8(unescaped_, code);
  return true;
}

bool JsonReader::read_hex(std::uint32_t& value) {
  value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == text_.size()) return fail("a hex digit");
    const char c = text_[at_];
    std::uint32_t digit = 0;
    if (is_digit(c)) {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A') + 10;
    } else {
      return fail("a hex digit");
    }
    value = value * 16 + digit;
  }
  return true;
}

bool JsonReader::read_number(JsonNumber& number) {
  if (peek() != JsonKind::kNumber) return fail("a number");
  const std::size_t begin = at_;
  const auto digits = [&] {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - from;
  };
  number.is_integer = true;
  if (text_[at_] == '-') ++at_;
  const std::size_t whole = at_;
  if (digits() == 0) return fail("a digit");
  if (text_[whole] == '0' && at_ > whole + 1) {
    at_ = whole;
    return fail("a number without leading zeros");
  }
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    number.is_integer = false;
    if (digits() == 0) return fail("a digit");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    number.is_integer = false;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (digits() == 0) return fail("a digit");
  }
  number.text = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonReader::take_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return fail("true, false or null");
  at_ += word.size();
  return true;
}

bool JsonReader::read_bool(bool& value) {
  if (peek() != JsonKind::kBool) return fail("true or false");
  value = text_[at_] == 't';
  return take_word(value ? "true" : "false");
}

bool JsonReader::skip_scalar(JsonKind kind) {
  std::string_view text;
  JsonNumber number;
  bool flag = false;
  switch (kind) {
    case JsonKind::kString: return read_string(text);
    case JsonKind::kNumber: return read_number(number);
    case JsonKind::kBool: return read_bool(flag);
    case JsonKind::kNull: return take_word("null");
    default: return fail("a value");
  }
}

bool JsonReader::skip_value() {
  const int outside = depth_;
  std::string_view key;
  do {
    const JsonKind kind = peek();
    if (kind == JsonKind::kObject || kind == JsonKind::kArray) {
      if (!(kind == JsonKind::kObject ? enter_object() : enter_array())) return false;
    } else if (!skip_scalar(kind)) {
      return false;
    }
    // Leaves every container that ends here; stops in front of the next value.
    while (depth_ > outside && is_ok()) {
      if ((objects_ & 1U) != 0 ? next_key(key) : next_element()) break;
    }
  } while (depth_ > outside && is_ok());
  return is_ok();
}

bool JsonReader::finish() {
  if (!is_ok()) return false;
  skip_space();
  return at_ == text_.size() || fail("the end");
}

void JsonReader::go_to(const Bookmark& mark) {
  at_ = mark.at;
  started_ = mark.started;
  objects_ = mark.objects;
  depth_ = mark.depth;
}

}  // namespace tonnage::codec
