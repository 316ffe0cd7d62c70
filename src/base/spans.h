// SPDX-License-Identifier: Apache-2.0
// Views of raw bytes, and the one place where a pointer changes its type.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace tonnage {

using ByteView = std::span<const std::byte>;
using MutableByteView = std::span<std::byte>;

inline ByteView as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The bytes as elements of T; the caller has proven size and alignment (tensor storage is aligned to 64).
template <typename T>
requires std::is_trivially_copyable_v<T> std::span<const T> as_elements(ByteView bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T>
requires std::is_trivially_copyable_v<T> std::span<T> as_elements(MutableByteView bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}
// For system calls that take another pointer type for the same memory (sockaddr and friends).
template <typename To, typename From>
To* pointer_cast(From* from) {
  return reinterpret_cast<To*>(from);
}

}  // namespace tonnage
