// SPDX-License-Identifier: Apache-2.0
#include "stub/allocator.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tonnage::stub {

Block::Block(CountingAllocator& owner, Bytes size) {
  owner.take(size);
  owner_ = &owner;
  try {
    buffer_ = tensor::Buffer(size.size());
  } catch (...) {
    owner.give_back(size);  // the destructor of a Block that was not made does not run
    throw;
  }
  const MutableByteView bytes = buffer_.mutable_view();
  if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
}

Block::Block(Block&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), buffer_(std::move(other.buffer_)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Block::~Block() {
  if (owner_ != nullptr) owner_->give_back(Bytes(buffer_.size()));
}

void CountingAllocator::begin(Bytes grant) {
  base_ = live_;
  highest_ = live_;
  limit_ = live_ + grant;
  refused_.reset();
}

Block CountingAllocator::allocate(Bytes size) { return Block(*this, size); }

void CountingAllocator::take(Bytes size) {
  if (live_ + size > limit_) {
    refused_ = std::max(saturating_sub(live_ + size, base_), peak());
    throw GrantExceeded();
  }
  live_ += size;
  highest_ = std::max(highest_, live_);
}

}  // namespace tonnage::stub
