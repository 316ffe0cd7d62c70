// SPDX-License-Identifier: Apache-2.0
// Against an allocator that caches and reserves in segments as the real one does; no GPU is needed or used.
#include "torch/gpu_meter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "wire/messages.h"

namespace tonnage::torch_worker {
namespace {

class FakeGpu final : public GpuStats {
 public:
  Bytes total() const override { return gib(16); }
  Bytes allocated() const override { return allocated_; }
  Bytes allocated_peak() const override { return peak_; }
  Bytes reserved() const override { return reserved_; }
  std::uint64_t refusals() const override { return refusals_; }
  Refused last_refused() const override { return last_refused_; }
  bool is_broken() const override { return is_broken_; }
  void reset_peak() override { peak_ = allocated_; }
  void limit_reserved(Bytes bytes) override { limit_ = bytes; }
  void release_cached() override { reserved_ = round_up(allocated_, mib(2)); }

  bool allocate(Bytes bytes) {
    const Bytes reserved = std::max(reserved_, round_up(allocated_ + bytes, mib(2)));
    if (reserved > limit_ || reserved > free_) {
      ++refusals_;
      last_refused_ = {reserved - reserved_, reserved_};
      return false;
    }
    reserved_ = reserved;
    allocated_ += bytes;
    peak_ = std::max(peak_, allocated_);
    return true;
  }
  void free(Bytes bytes) { allocated_ -= bytes; }
  Bytes limit() const { return limit_; }
  void let_others_leave(Bytes free) { free_ = free; }
  void break_down() { is_broken_ = true; }

 private:
  Bytes allocated_;
  Bytes peak_;
  Bytes reserved_;
  Bytes limit_ = gib(16);
  Bytes free_ = gib(16);  // what other processes leave
  std::uint64_t refusals_ = 0;
  Refused last_refused_;
  bool is_broken_ = false;
};

struct GpuMeterTest : testing::Test {
  FakeGpu gpu;
  GpuMeter meter{gpu};
};

TEST_F(GpuMeterTest, ABatchInsideItsGrantIsMeasuredAboveTheWeights) {
  ASSERT_TRUE(gpu.allocate(mib(500)));  // weights
  meter.begin(mib(100));
  ASSERT_TRUE(gpu.allocate(mib(60)));
  ASSERT_TRUE(gpu.allocate(mib(30)));
  gpu.free(mib(90));
  meter.end();
  EXPECT_EQ(mib(90), meter.peak());
  EXPECT_EQ(mib(500), meter.live());
  EXPECT_FALSE(meter.over_grant());
  EXPECT_EQ(gpu.total(), gpu.limit()) << "loading and trimming know no grant";
}

TEST_F(GpuMeterTest, WhatGoesAboveTheGrantIsRefusedAndSaysHowMuchItNeeded) {
  meter.begin(mib(100));
  ASSERT_TRUE(gpu.allocate(mib(90)));
  EXPECT_FALSE(gpu.allocate(mib(200)));
  meter.end();
  EXPECT_TRUE(meter.over_grant());
  EXPECT_EQ(mib(290), meter.needed());
}

TEST_F(GpuMeterTest, ARefusalOfAnEarlierBatchIsNotThisOnes) {
  meter.begin(mib(10));
  EXPECT_FALSE(gpu.allocate(mib(200)));
  meter.end();
  meter.begin(mib(300));
  EXPECT_TRUE(gpu.allocate(mib(200)));
  EXPECT_FALSE(meter.over_grant());
  EXPECT_EQ(Bytes(), meter.needed());
}

TEST_F(GpuMeterTest, BytesCachedByALargerBatchAreNoRoomForASmallerOne) {
  meter.begin(mib(1000));
  ASSERT_TRUE(gpu.allocate(mib(900)));
  gpu.free(mib(900));
  meter.end();
  ASSERT_EQ(mib(900), meter.reserved());
  meter.begin(mib(50));
  EXPECT_FALSE(gpu.allocate(mib(400)));
  EXPECT_TRUE(meter.over_grant());
}

TEST_F(GpuMeterTest, WhatOtherProcessesTookIsPressureAndTeachesNothing) {
  gpu.let_others_leave(mib(64));
  meter.begin(mib(100));
  ASSERT_TRUE(gpu.allocate(mib(50)));
  EXPECT_FALSE(gpu.allocate(mib(40)));
  meter.end();
  EXPECT_TRUE(meter.pressure());
  EXPECT_FALSE(meter.over_grant());
  EXPECT_EQ(Bytes(), meter.needed());
}

TEST_F(GpuMeterTest, NoBatchReservesMoreThanItsGrantAndOneSegmentAboveWhatIsLive) {
  ASSERT_TRUE(gpu.allocate(mib(301)));  // weights
  for (std::uint64_t n = 1; n <= 50; ++n) {
    const Bytes grant = mib(7) * n;
    meter.begin(grant);
    Bytes held;
    while (gpu.allocate(mib(3))) held += mib(3);
    EXPECT_LE(meter.reserved(), mib(301) + grant + wire::kSegmentSlack);
    EXPECT_TRUE(meter.over_grant());
    gpu.free(held);
    meter.end();
  }
}

TEST_F(GpuMeterTest, ABatchWithoutABoundHasTheWholeDevice) {
  meter.begin(Bytes::max());
  EXPECT_EQ(gpu.total(), gpu.limit());
  EXPECT_FALSE(gpu.allocate(gib(17)));
  EXPECT_TRUE(meter.over_grant());
}

TEST_F(GpuMeterTest, ABrokenDeviceSaysSo) {
  EXPECT_FALSE(meter.is_broken());
  gpu.break_down();
  EXPECT_TRUE(meter.is_broken());
}

TEST_F(GpuMeterTest, TheLeaseFallsByTrimAlone) {
  ASSERT_TRUE(gpu.allocate(mib(300)));
  gpu.free(mib(200));
  EXPECT_EQ(mib(300), meter.reserved());
  meter.trim();
  EXPECT_EQ(mib(100), meter.reserved());
}

}  // namespace
}  // namespace tonnage::torch_worker
