// SPDX-License-Identifier: Apache-2.0
// A random tensor for one input: integers uniform below the vocabulary (ones for a mask), floats in
// [0, 1). The bytes are little-endian, as the V2 binary extension wants them.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "load/model_info.h"

namespace tonnage::load {

struct TensorSize {
  std::uint64_t rows = 1;
  std::uint32_t length = 1;  // for the free dims after the first
  std::uint32_t vocabulary = 2;
};

struct TensorText {
  std::string shape;  // "[1,128]"
  std::string bytes;
  std::string datatype;
  std::uint32_t element_bytes = 1;

  std::string json() const;  // "[1,2,3]"
};

void append_little_endian(std::string& out, std::uint64_t value, std::uint32_t bytes);
TensorText make_tensor(const InputInfo& input, const TensorSize& size, Random& random);

}  // namespace tonnage::load
