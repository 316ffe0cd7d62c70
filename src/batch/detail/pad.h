// SPDX-License-Identifier: Apache-2.0
// Filling padding positions: one value of a tensor's type, repeated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/spans.h"
#include "tensor/datatype.h"

namespace tonnage::batch::detail {

struct Element {
  std::array<std::byte, 8> bytes{};
  std::size_t size = 0;
};

// `value` as one element of `type` (not BYTES), rounded where the type is narrower.
Element make_element(tensor::DataType type, std::int64_t value);
// `target` holds a whole number of elements.
void fill(MutableByteView target, const Element& element);

}  // namespace tonnage::batch::detail
