// SPDX-License-Identifier: Apache-2.0
// Linked with the malloc of the workers.
#include "kit/malloc_watch.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace tonnage::kit {
namespace {

constexpr int kFlagged = 3;
constexpr int kNotFlagged = 4;
constexpr int kNotWatched = 5;

// In a process of its own: a limit on data, then one allocation that cannot be served.
template <typename Allocate>
[[noreturn]] void exhaust(std::size_t bytes, Allocate allocate) {
  static constinit MemoryMeter meter;
  if (!watch_malloc(meter)) std::_Exit(kNotWatched);
  meter.begin(gib(1));
  const rlimit limit{std::size_t{64} << 20U, RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &limit);
  for (bool served = true; served;) {
    void* volatile block = allocate(bytes);  // seen from outside: not optimised away
    served = block != nullptr;
  }
  std::_Exit(meter.pressure() ? kFlagged : kNotFlagged);
}

void* aligned(std::size_t bytes) {
  void* block = nullptr;
  return ::posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}

TEST(MallocWatchDeathTest, FlagsWhatALibraryInCCouldNotGet) {
  static constinit MemoryMeter meter;
  if (!watch_malloc(meter)) GTEST_SKIP() << "SKIPPED: this build brings a malloc of its own";
  for (const std::size_t bytes : {std::size_t{1} << 30U, std::size_t{1} << 20U, std::size_t{100}}) {
    EXPECT_EXIT(exhaust(bytes, [](std::size_t n) { return std::malloc(n); }),
                testing::ExitedWithCode(kFlagged), "")
        << bytes;
    EXPECT_EXIT(exhaust(bytes, aligned), testing::ExitedWithCode(kFlagged), "") << bytes;
  }
}

TEST(MallocWatchDeathTest, FlagsAFailedOperatorNew) {
  const auto by_new = [](std::size_t bytes) -> void* {
    try {
      return std::make_unique<std::byte[]>(bytes).release();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  };
  static constinit MemoryMeter meter;
  if (!watch_malloc(meter)) GTEST_SKIP() << "SKIPPED: this build brings a malloc of its own";
  EXPECT_EXIT(exhaust(std::size_t{1} << 30U, by_new), testing::ExitedWithCode(kFlagged), "");
}

TEST(MallocWatch, FlagsNothingWhereMemorySuffices) {
  static constinit MemoryMeter meter;
  watch_malloc(meter);
  meter.begin(gib(1));
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 20U, std::size_t{32} << 20U}) {
    void* volatile block = std::malloc(bytes);
    std::free(block);
  }
  EXPECT_FALSE(meter.pressure());
}

}  // namespace
}  // namespace tonnage::kit
