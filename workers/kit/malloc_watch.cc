// SPDX-License-Identifier: Apache-2.0
#include "kit/malloc_watch.h"

#include <jemalloc/jemalloc.h>

#include <cstdlib>
#include <new>
#include <string>

// Weak: absent where the program was built without jemalloc, as under the sanitizers.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value,
                       std::size_t new_size) __attribute__((weak));

namespace tonnage::kit {
namespace {

constexpr std::size_t kHuge = std::size_t{16} << 20U;  // above jemalloc's oversize_threshold

MemoryMeter* watched = nullptr;
extent_alloc_t* default_alloc = nullptr;
extent_hooks_t hooks;  // jemalloc keeps a pointer to it

// jemalloc asks this for address space when it has nothing left to give.
template <typename... Wishes>
void* alloc_extent(extent_hooks_t* own, void* at, Wishes... wishes) {
  void* extent = default_alloc(own, at, wishes...);
  if (extent == nullptr && at == nullptr) watched->flag_pressure();
  return extent;
}

[[noreturn]] void on_failed_new() {
  watched->flag_pressure();
  throw std::bad_alloc();  // what operator new asks of a handler that cannot find memory
}

bool hook(unsigned arena) {
  const std::string name = "arena." + std::to_string(arena) + ".extent_hooks";
  extent_hooks_t* now = nullptr;
  std::size_t size = sizeof now;
  if (mallctl(name.c_str(), &now, &size, nullptr, 0) != 0) return false;
  if (default_alloc == nullptr) {
    hooks = *now;
    default_alloc = now->alloc;
    hooks.alloc = &alloc_extent;
  }
  extent_hooks_t* ours = &hooks;
  return mallctl(name.c_str(), nullptr, nullptr, &ours, sizeof ours) == 0;
}

}  // namespace

bool watch_malloc(MemoryMeter& meter) {
  watched = &meter;
  std::set_new_handler(&on_failed_new);
  if (mallctl == nullptr) return false;
  // Large blocks have an arena of their own, which the first of them makes.
  void* volatile huge = std::malloc(kHuge);  // NOLINT: untouched, so it costs address space only
  std::free(huge);                           // NOLINT
  unsigned arenas = 0;
  std::size_t size = sizeof arenas;
  if (mallctl("arenas.narenas", &arenas, &size, nullptr, 0) != 0) return false;
  bool all = true;
  for (unsigned arena = 0; arena < arenas; ++arena) all = hook(arena) && all;
  return all;
}

}  // namespace tonnage::kit
