// SPDX-License-Identifier: Apache-2.0
#include "torch/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/checked.h"

namespace tonnage::torch_worker {
namespace {

constexpr std::size_t kAlignment = 64;

struct alignas(kAlignment) Header {
  kit::MemoryMeter* meter;
  std::size_t bytes;
};
static_assert(sizeof(Header) == kAlignment);

Header* header_of(void* payload) {
  return std::launder(
      static_cast<Header*>(static_cast<void*>(static_cast<std::byte*>(payload) - sizeof(Header))));
}

void release(void* payload) {
  if (payload == nullptr) return;
  Header* header = header_of(payload);
  header->meter->give_back(header->bytes);
  std::free(header);  // NOLINT: the counterpart of aligned_alloc
}

// Counted bytes are those asked for, without header and rounding: they repeat exactly per shape.
void* take_block(kit::MemoryMeter& meter, std::size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, meter.take(bytes), "tonnage: ", bytes,
                   " bytes would exceed the batch's grant");
  const auto padded = checked_add(bytes, 2 * sizeof(Header) - 1);
  void* block = padded ? std::aligned_alloc(kAlignment, *padded / kAlignment * kAlignment) : nullptr;
  if (block == nullptr) {
    meter.give_back(bytes);
    meter.flag_pressure();
    TORCH_CHECK_WITH(OutOfMemoryError, false, "tonnage: the kernel refused ", bytes,
                     " bytes inside the grant");
  }
  std::construct_at(static_cast<Header*>(block), Header{&meter, bytes});
  return static_cast<std::byte*>(block) + sizeof(Header);
}

class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(kit::MemoryMeter& meter) : meter_(meter) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    void* payload = bytes == 0 ? nullptr : take_block(meter_, bytes);
    return {payload, payload, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  kit::MemoryMeter& meter_;
};

// Tensors may outlive static destruction, so the allocator has no destructor to run.
alignas(CountingAllocator) std::array<std::byte, sizeof(CountingAllocator)> allocator_storage;
kit::MemoryMeter* new_handler_meter = nullptr;

[[noreturn]] void on_failed_new() {
  new_handler_meter->flag_pressure();
  throw std::bad_alloc();  // what operator new asks of a handler that cannot find memory
}

}  // namespace

void install_counting_allocator(kit::MemoryMeter& meter) {
  void* storage = allocator_storage.data();
  c10::SetCPUAllocator(std::construct_at(static_cast<CountingAllocator*>(storage), meter), 1);
  new_handler_meter = &meter;
  std::set_new_handler(&on_failed_new);
}

}  // namespace tonnage::torch_worker
