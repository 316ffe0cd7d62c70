// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor as numbers, whatever its datatype.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "base/spans.h"
#include "tensor/datatype.h"

namespace tonnage::kit {

// Calls use(std::span<T>) with the element type (const T for a ByteView); nothing for FP16, BF16 and
// BYTES, which have no numbers in C++.
template <typename View, typename Use>
requires std::is_same_v<View, ByteView> || std::is_same_v<View, MutableByteView>
void visit_elements(tensor::DataType type, View bytes, Use use) {
  using enum tensor::DataType;
  switch (type) {
    case kBool:
    case kUint8: return use(as_elements<std::uint8_t>(bytes));
    case kUint16: return use(as_elements<std::uint16_t>(bytes));
    case kUint32: return use(as_elements<std::uint32_t>(bytes));
    case kUint64: return use(as_elements<std::uint64_t>(bytes));
    case kInt8: return use(as_elements<std::int8_t>(bytes));
    case kInt16: return use(as_elements<std::int16_t>(bytes));
    case kInt32: return use(as_elements<std::int32_t>(bytes));
    case kInt64: return use(as_elements<std::int64_t>(bytes));
    case kFp32: return use(as_elements<float>(bytes));
    case kFp64: return use(as_elements<double>(bytes));
    case kFp16:
    case kBf16:
    case kBytes: return;
  }
}

}  // namespace tonnage::kit
