// SPDX-License-Identifier: Apache-2.0
// One hexadecimal digit, of percent-encodings and of chunk sizes. Pure.
#pragma once

namespace tonnage::http {

// −1: it is none.
inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace tonnage::http
