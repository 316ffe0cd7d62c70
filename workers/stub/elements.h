// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as numbers, whatever its datatype. Floats are converted; FP16, BF16 and
// BYTES have no numbers here and count as none.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "kit/runtime.h"

namespace tonnage::stub {

// Calls use(std::span<const T>) with the element type of `tensor`; nothing where it has no numbers.
template <typename Use>
void visit_elements(const kit::Tensor& tensor, Use use) {
  using tensor::DataType;
  switch (tensor.type) {
    case DataType::kBool:
    case DataType::kUint8: return use(as_elements<std::uint8_t>(tensor.data));
    case DataType::kUint16: return use(as_elements<std::uint16_t>(tensor.data));
    case DataType::kUint32: return use(as_elements<std::uint32_t>(tensor.data));
    case DataType::kUint64: return use(as_elements<std::uint64_t>(tensor.data));
    case DataType::kInt8: return use(as_elements<std::int8_t>(tensor.data));
    case DataType::kInt16: return use(as_elements<std::int16_t>(tensor.data));
    case DataType::kInt32: return use(as_elements<std::int32_t>(tensor.data));
    case DataType::kInt64: return use(as_elements<std::int64_t>(tensor.data));
    case DataType::kFp32: return use(as_elements<float>(tensor.data));
    case DataType::kFp64: return use(as_elements<double>(tensor.data));
    case DataType::kFp16:
    case DataType::kBf16:
    case DataType::kBytes: return;
  }
}

// Is `value` this integer? Without the surprises of comparing mixed types.
template <typename T>
bool equals(T value, std::int64_t wanted) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return wanted >= 0 && value == static_cast<std::uint64_t>(wanted);
  } else if constexpr (std::is_floating_point_v<T>) {
    return value == static_cast<T>(wanted);
  } else {
    return std::int64_t{value} == wanted;
  }
}

}  // namespace tonnage::stub
