// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as numbers; FP16, BF16 and BYTES have none here.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kit/elements.h"
#include "kit/runtime.h"

namespace tonnage::stub {

template <typename Use>
void visit_elements(const kit::Tensor& tensor, Use use) {
  kit::visit_elements(tensor.type, tensor.data, use);
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
