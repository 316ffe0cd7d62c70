// SPDX-License-Identifier: Apache-2.0
#include "tensor/buffer.h"

#include <new>

namespace tonnage::tensor {

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  data_.reset(static_cast<std::byte*>(::operator new[](size, std::align_val_t(kAlignment))));
}

void Buffer::Free::operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(kAlignment)); }

}  // namespace tonnage::tensor
