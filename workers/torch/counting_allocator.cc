// SPDX-License-Identifier: Apache-2.0
#include "torch/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <array>
#include <memory>

#include "kit/counted_memory.h"
#include "kit/malloc_watch.h"

namespace tonnage::torch_worker {
namespace {

void* take_block(kit::MemoryMeter& meter, std::size_t bytes) {
  void* block = kit::allocate_counted(meter, bytes);
  TORCH_CHECK_WITH(OutOfMemoryError, block != nullptr, "tonnage: ", bytes,
                   " bytes were refused, by the batch's grant or by the kernel");
  return block;
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(kit::MemoryMeter& meter) : meter_(meter) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    void* payload = bytes == 0 ? nullptr : take_block(meter_, bytes);
    return {payload, payload, &kit::release_counted, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &kit::release_counted; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  kit::MemoryMeter& meter_;
};

// Tensors may outlive static destruction, so the allocator has no destructor to run.
alignas(CountingAllocator) std::array<std::byte, sizeof(CountingAllocator)> allocator_storage;

}  // namespace

void install_counting_allocator(kit::MemoryMeter& meter) {
  void* storage = allocator_storage.data();
  c10::SetCPUAllocator(std::construct_at(static_cast<CountingAllocator*>(storage), meter), 1);
  (void)kit::watch_malloc(meter);  // without jemalloc only operator new is watched
}

}  // namespace tonnage::torch_worker
