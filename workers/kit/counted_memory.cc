// SPDX-License-Identifier: Apache-2.0
#include "kit/counted_memory.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "base/checked.h"

namespace tonnage::kit {
namespace {

constexpr std::size_t kAlignment = 64;

struct alignas(kAlignment) Header {
  MemoryMeter* meter;
  std::size_t bytes;
};
static_assert(sizeof(Header) == kAlignment);

Header* header_of(void* payload) {
  return std::launder(
      static_cast<Header*>(static_cast<void*>(static_cast<std::byte*>(payload) - sizeof(Header))));
}

}  // namespace

void* allocate_counted(MemoryMeter& meter, std::size_t bytes) {
  if (!meter.take(bytes)) return nullptr;
  const auto padded = checked_add(bytes, 2 * sizeof(Header) - 1);
  void* block = padded ? std::aligned_alloc(kAlignment, *padded / kAlignment * kAlignment) : nullptr;
  if (block == nullptr) {
    meter.give_back(bytes);
    meter.flag_pressure();
    return nullptr;
  }
  std::construct_at(static_cast<Header*>(block), Header{&meter, bytes});
  return static_cast<std::byte*>(block) + sizeof(Header);
}

void release_counted(void* payload) {
  if (payload == nullptr) return;
  Header* header = header_of(payload);
  header->meter->give_back(header->bytes);
  std::free(header);  // NOLINT: the counterpart of aligned_alloc
}

}  // namespace tonnage::kit
