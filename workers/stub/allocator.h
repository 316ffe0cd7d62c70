// SPDX-License-Identifier: Apache-2.0
// CountingAllocator: the stub's tensor memory. Counts to the byte, refuses above the grant, and really
// takes the memory, so that what the kernel sees can be tested against what was counted.
// Threads: one.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "base/bytes.h"
#include "tensor/buffer.h"

namespace tonnage::stub {

// Thrown by allocate() and caught by StubRuntime only; what counts as out-of-memory is refused().
class GrantExceeded final : public std::exception {
 public:
  const char* what() const noexcept override { return "an allocation was refused"; }
};

class CountingAllocator;

// Bytes that return themselves. The allocator outlives its blocks.
class Block {
 public:
  Block() = default;
  Block(CountingAllocator& owner, Bytes size);
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block();

  MutableByteView bytes() { return buffer_.mutable_view(); }
  ByteView bytes() const { return buffer_.view(); }

 private:
  CountingAllocator* owner_ = nullptr;
  tensor::Buffer buffer_;
};

class CountingAllocator {
 public:
  CountingAllocator() = default;
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  // Until end(), live bytes may rise by at most `grant`; counting of the peak starts anew.
  void begin(Bytes grant);
  void end() { limit_ = Bytes::max(); }

  Block allocate(Bytes size);  // throws GrantExceeded; touches every page

  Bytes live() const { return live_; }
  Bytes peak() const { return saturating_sub(highest_, base_); }  // since begin()
  Bytes left() const { return saturating_sub(limit_, live_); }
  // Set when an allocation was refused since begin(): the grant that it would have needed.
  std::optional<Bytes> refused() const { return refused_; }

 private:
  friend class Block;
  void take(Bytes size);
  void give_back(Bytes size) { live_ -= size; }

  Bytes live_;
  Bytes base_;
  Bytes highest_;
  Bytes limit_ = Bytes::max();
  std::optional<Bytes> refused_;
};

}  // namespace tonnage::stub
