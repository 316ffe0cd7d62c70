// SPDX-License-Identifier: Apache-2.0
// Tensor: type, shape and borrowed bytes of one input or output.
#pragma once

#include "base/spans.h"
#include "tensor/datatype.h"
#include "tensor/shape.h"

namespace tonnage::kit {

struct Tensor {
  tensor::DataType type = tensor::DataType::kFp32;
  tensor::Shape shape{};
  ByteView data{};
};

}  // namespace tonnage::kit
