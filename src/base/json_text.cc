// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>

namespace tonnage {
namespace {

bool is_continuation(unsigned char c) { return (c & 0xc0U) == 0x80U; }

// Length of the UTF-8 sequence that starts at `at`, or 0 when it is not one (RFC 3629).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const std::size_t left = text.size() - at;
  if (lead < 0x80) return 1;
  std::size_t need = 0;
  if (lead >= 0xc2 && lead <= 0xdf) need = 2;
  if (lead >= 0xe0 && lead <= 0xef) need = 3;
  if (lead >= 0xf0 && lead <= 0xf4) need = 4;
  if (need == 0 || left < need) return 0;
  for (std::size_t i = 1; i < need; ++i) {
    if (!is_continuation(byte(i))) return 0;
  }
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return need;
}

void append_escaped_ascii(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(c) < 0x20) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += c;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) {
      out += "\\ufffd";
      ++at;
    } else if (length == 1) {
      append_escaped_ascii(out, text[at++]);
    } else {
      out.append(text, at, length);
      at += length;
    }
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

void append_json_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  fmt::format_to(std::back_inserter(out), "{}", value);
}

}  // namespace tonnage
