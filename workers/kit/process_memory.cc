// SPDX-License-Identifier: Apache-2.0
#include "kit/process_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

// Weak: absent where the program was built without jemalloc, as under the sanitizers.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value,
                       std::size_t new_size) __attribute__((weak));

namespace tonnage::kit {

ResidentReader::ResidentReader() : statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

Bytes ResidentReader::read() const {
  std::array<char, 128> text{};
  const ssize_t size = ::pread(statm_.get(), text.data(), text.size() - 1, 0);
  if (size <= 0) return Bytes();
  // Fields in pages: size, resident, shared (files and shared memory), … RssAnon = resident − shared.
  std::array<std::uint64_t, 3> pages{};
  const char* at = text.data();
  const char* const end = text.data() + size;
  for (std::uint64_t& field : pages) {
    while (at != end && *at == ' ') ++at;
    at = std::from_chars(at, end, field).ptr;
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return saturating_sub(Bytes(pages[1]), Bytes(pages[2])) * page;
}

Heap read_heap() {
  if (mallctl == nullptr) {
    const struct mallinfo2 info = ::mallinfo2();
    return {Bytes(info.arena + info.hblkhd), Bytes(info.uordblks + info.hblkhd)};
  }
  std::uint64_t epoch = 1;  // the numbers stand still until it is set
  (void)mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
  const auto number = [](const char* name) {
    std::size_t value = 0;
    std::size_t size = sizeof(value);
    return mallctl(name, &value, &size, nullptr, 0) == 0 ? Bytes(value) : Bytes();
  };
  return {number("stats.resident"), number("stats.allocated")};
}

Heap growth_since(const Heap& before, const Heap& now) {
  const Bytes resident = saturating_sub(now.resident, before.resident);
  return {resident, std::min(resident, saturating_sub(now.used, before.used))};
}

void purge_malloc() {
  if (mallctl != nullptr) {
    (void)mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    (void)mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096: all arenas
  } else {
    (void)::malloc_trim(0);
  }
}

}  // namespace tonnage::kit
