// SPDX-License-Identifier: Apache-2.0
// Replaces the program's operator new by one that counts. Include it in exactly one source of a program;
// the count proves that a path which promises not to allocate does not. clang links an operator new of its
// own into what its thread sanitizer watches: nothing is counted there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "testkit/sanitizer.h"

namespace tonnage::testkit {

inline constexpr bool kCountsAllocations = !TONNAGE_CLANG_TSAN;

inline std::atomic<std::uint64_t> allocations_so_far{0};

inline void* counted_allocation(std::size_t size, std::size_t alignment) {
  allocations_so_far.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  if (void* const block = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)) return block;
  std::abort();
}

}  // namespace tonnage::testkit

#if !TONNAGE_CLANG_TSAN
// None of these is inlined: the compiler would see free() meet operator new and call it a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  return tonnage::testkit::counted_allocation(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new[](std::size_t size) {
  return tonnage::testkit::counted_allocation(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return tonnage::testkit::counted_allocation(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return tonnage::testkit::counted_allocation(size, static_cast<std::size_t>(alignment));
}
// Not left to the library: under a sanitizer these would come from its own heap.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return operator new(size);
}
[[gnu::noinline]] void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return operator new[](size);
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
#endif
