// SPDX-License-Identifier: Apache-2.0
// Elements of type BYTES, as they lie in buffers and on the wire: (uint32 little-endian length, bytes)*.
//
// Promises: nothing beyond the given bytes is read, whatever the lengths say.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/spans.h"
#include "tensor/block.h"

namespace tonnage::tensor {

// Takes one element off the front of `rest`; nothing when its length leaves `rest`.
std::optional<std::string_view> take_string(ByteView& rest);
// How many bytes the first `count` elements take; nothing when they are not all there.
std::optional<std::size_t> strings_size(ByteView bytes, std::uint64_t count);
void append_string(std::vector<std::byte>& out, std::string_view text);
// The elements of `from` laid into `dims`: what is outside is cut, what is missing is the empty string.
// Nothing when `from.bytes` does not hold the elements of `from.dims`.
std::optional<std::vector<std::byte>> reshape_strings(ConstBlock from, Dims dims);

}  // namespace tonnage::tensor
