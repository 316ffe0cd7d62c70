// SPDX-License-Identifier: Apache-2.0
// UTF-8, byte by byte, without a library's macros.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tonnage::text::detail {

// Where the text stops being valid UTF-8 (overlong forms, surrogates and values above U+10FFFF count).
std::optional<std::size_t> first_invalid_byte(std::string_view text);

// The code point at `at`, which is moved behind it. The text must be valid UTF-8.
char32_t next_code_point(std::string_view text, std::size_t& at);

// Writes 1 to 4 bytes; returns how many.
std::size_t put_code_point(char32_t code, char* out);

// Starts a code point: any byte but 10xxxxxx.
inline bool starts_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

}  // namespace tonnage::text::detail
