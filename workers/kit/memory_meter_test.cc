// SPDX-License-Identifier: Apache-2.0
#include "kit/memory_meter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tonnage::kit {
namespace {

TEST(MemoryMeter, CountsPeakAboveWhatWasLiveBefore) {
  MemoryMeter meter;
  EXPECT_TRUE(meter.take(1000));
  meter.begin(Bytes(500));
  EXPECT_TRUE(meter.take(300));
  meter.give_back(300);
  EXPECT_TRUE(meter.take(200));
  EXPECT_EQ(Bytes(300), meter.peak());
  EXPECT_EQ(Bytes(1200), meter.live());
}

TEST(MemoryMeter, RefusesAboveTheGrantAndSaysWhatItWouldHaveNeeded) {
  MemoryMeter meter;
  EXPECT_TRUE(meter.take(1000));
  meter.begin(Bytes(500));
  EXPECT_TRUE(meter.take(400));
  EXPECT_FALSE(meter.take(101));
  EXPECT_TRUE(meter.over_grant());
  EXPECT_EQ(Bytes(501), meter.needed());
  EXPECT_EQ(Bytes(400), meter.peak()) << "a refusal is not counted";
  EXPECT_TRUE(meter.take(100));
}

TEST(MemoryMeter, RefusesNothingBetweenBatches) {
  MemoryMeter meter;
  meter.begin(Bytes(10));
  meter.end();
  EXPECT_TRUE(meter.take(1000));
  EXPECT_FALSE(meter.over_grant());
}

TEST(MemoryMeter, ClearsItsFlagsWithTheNextBatch) {
  MemoryMeter meter;
  meter.begin(Bytes(10));
  EXPECT_FALSE(meter.take(11));
  meter.flag_pressure();
  meter.begin(Bytes(20));
  EXPECT_FALSE(meter.over_grant());
  EXPECT_FALSE(meter.pressure());
  EXPECT_EQ(Bytes(), meter.needed());
}

TEST(MemoryMeter, DoesNotWrapOnAnAbsurdSize) {
  MemoryMeter meter;
  EXPECT_TRUE(meter.take(100));
  meter.begin(Bytes(50));
  EXPECT_FALSE(meter.take(~0ULL));
  EXPECT_FALSE(meter.take(~0ULL - 60));
  EXPECT_EQ(Bytes(100), meter.live());
}

TEST(MemoryMeter, AllowsOnlyWhatWasLiveBeforeWithAnEmptyGrant) {
  MemoryMeter meter;
  EXPECT_TRUE(meter.take(100));
  meter.begin(Bytes());
  EXPECT_FALSE(meter.take(1));
}

TEST(MemoryMeter, LosesNoByteBetweenThreads) {
  MemoryMeter meter;
  meter.begin(Bytes::max());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&meter] {
      for (int i = 0; i < 10000; ++i) {
        if (meter.take(64)) meter.give_back(64);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(Bytes(), meter.live());
  EXPECT_GE(meter.peak(), Bytes(64));
  EXPECT_LE(meter.peak(), Bytes(4 * 64));
}

}  // namespace
}  // namespace tonnage::kit
