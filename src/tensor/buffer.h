// SPDX-License-Identifier: Apache-2.0
// Buffer: owned bytes, aligned to 64 (as every tensor is), move-only, not initialised.
// The owner of a large Buffer holds the Charge for it (memory/budget.h); the Buffer itself does not.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/spans.h"

namespace tonnage::tensor {

inline constexpr std::size_t kAlignment = 64;
constexpr std::size_t align_up(std::size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size);  // contents undefined
  Buffer(Buffer&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::size_t size() const { return size_; }
  ByteView view() const { return {data_.get(), size_}; }
  MutableByteView mutable_view() { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace tonnage::tensor
