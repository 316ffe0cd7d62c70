// SPDX-License-Identifier: Apache-2.0
#include "kit/counted_memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace tonnage::kit {
namespace {

TEST(CountedMemory, CountsWhatWasAskedForAndNothingElse) {
  MemoryMeter meter;
  meter.begin(kib(1));
  void* block = allocate_counted(meter, 1000);
  ASSERT_NE(nullptr, block);
  std::memset(block, 1, 1000);
  EXPECT_EQ(Bytes(1000), meter.live());
  release_counted(block);
  release_counted(nullptr);
  EXPECT_EQ(Bytes(), meter.live());
  EXPECT_EQ(Bytes(1000), meter.peak());
}

TEST(CountedMemory, AlignsEveryPayloadTo64) {
  MemoryMeter meter;
  std::vector<void*> blocks;
  for (std::size_t bytes : {1U, 63U, 64U, 65U, 4097U}) blocks.push_back(allocate_counted(meter, bytes));
  for (void* block : blocks) {
    EXPECT_EQ(0U, std::bit_cast<std::uintptr_t>(block) % 64);
    release_counted(block);
  }
}

TEST(CountedMemory, RefusesAboveTheGrant) {
  MemoryMeter meter;
  meter.begin(Bytes(100));
  EXPECT_EQ(nullptr, allocate_counted(meter, 101));
  EXPECT_TRUE(meter.over_grant());
  EXPECT_FALSE(meter.pressure());
}

TEST(CountedMemory, CallsAMallocThatFailsPressureAndCountsNothing) {
  MemoryMeter meter;
  EXPECT_EQ(nullptr, allocate_counted(meter, std::size_t{1} << 62U));
  EXPECT_TRUE(meter.pressure());
  EXPECT_FALSE(meter.over_grant());
  EXPECT_EQ(nullptr, allocate_counted(meter, ~std::size_t{0} - 8));
  EXPECT_EQ(Bytes(), meter.live());
}

}  // namespace
}  // namespace tonnage::kit
