// SPDX-License-Identifier: Apache-2.0
#include "text/detail/utf8.h"

#include <cstdint>

namespace tonnage::text::detail {

namespace {

std::uint32_t byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

bool is_continuation(std::string_view text, std::size_t at) {
  return at < text.size() && !starts_code_point(text[at]);
}

// Length of the valid sequence that starts at `at`; 0 when there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const std::uint32_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;  // a stray continuation, an overlong lead, beyond U+10FFFF
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text, at + i)) return 0;
  }
  const std::uint32_t second = byte_at(text, at + 1);
  const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_surrogate = lead == 0xED && second >= 0xA0;
  const bool is_beyond = lead == 0xF4 && second >= 0x90;
  return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

}  // namespace

std::optional<std::size_t> first_invalid_byte(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const std::uint32_t lead = byte_at(text, at++);
  if (lead < 0x80) return static_cast<char32_t>(lead);
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  std::uint32_t code = lead & (0x3FU >> more);
  for (int i = 0; i < more; ++i) code = (code << 6) | (byte_at(text, at++) & 0x3FU);
  return static_cast<char32_t>(code);
}

std::size_t put_code_point(char32_t code, char* out) {
  const auto value = static_cast<std::uint32_t>(code);
  const auto tail = [value](int shift) { return static_cast<char>(0x80U | ((value >> shift) & 0x3FU)); };
  if (value < 0x80) {
    out[0] = static_cast<char>(value);
    return 1;
  }
  if (value < 0x800) {
    out[0] = static_cast<char>(0xC0U | (value >> 6));
    out[1] = tail(0);
    return 2;
  }
  if (value < 0x10000) {
    out[0] = static_cast<char>(0xE0U | (value >> 12));
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xF0U | (value >> 18));
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

}  // namespace tonnage::text::detail
