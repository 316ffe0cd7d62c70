// SPDX-License-Identifier: Apache-2.0
#include "tensor/block.h"

#include <cstring>

namespace tonnage::tensor {

void copy_block(ConstBlock from, Block to, std::size_t element_size) {
  for_each_run(from.dims, to.dims, [&](std::size_t at_from, std::size_t at_to, std::size_t count) {
    const ByteView source = from.bytes.subspan(at_from * element_size, count * element_size);
    const MutableByteView target = to.bytes.subspan(at_to * element_size, count * element_size);
    if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
  });
}

bool is_prefix(Dims smaller, Dims dims) {
  if (smaller.size() != dims.size()) return false;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (smaller[i] != dims[i]) return false;
  }
  return dims.empty() || smaller[0] <= dims[0];
}

}  // namespace tonnage::tensor
