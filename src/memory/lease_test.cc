// SPDX-License-Identifier: Apache-2.0
#include "memory/lease.h"

#include <gtest/gtest.h>

namespace tonnage::memory {
namespace {

constexpr Bytes kReady = mib(100);

class LeaseTest : public testing::Test {
 protected:
  // One batch whose true resident use above ready is `resident`.
  void batch(Bytes grant, Bytes resident, Bytes peak) {
    ASSERT_TRUE(lease_.begin(grant).is_ok());
    lease_.end(kReady + resident, peak);
  }

  Budget budget_{"host", mib(200)};
  Lease lease_{budget_.root().child("lease"), kReady, mib(300)};
};

TEST_F(LeaseTest, StartsEmptyAndReservesTheFirstGrantWithSlack) {
  EXPECT_EQ(Bytes(), lease_.amount());
  ASSERT_TRUE(lease_.begin(mib(50)).is_ok());
  EXPECT_EQ(mib(58), lease_.amount());
  EXPECT_EQ(mib(58), budget_.root().used());
}

TEST_F(LeaseTest, FallsToWhatBecameResidentWhenTheBatchIsDone) {
  batch(mib(50), mib(48), mib(45));
  EXPECT_EQ(mib(48), lease_.resident_high());
  EXPECT_EQ(mib(3), lease_.slack());
  EXPECT_EQ(mib(51), lease_.amount());  // 48 and a rest of 1/16
}

TEST_F(LeaseTest, IsFreeForALikeBatchAndDoesNotCountItTwice) {
  batch(mib(46), mib(48), mib(45));
  const Bytes held = lease_.amount();
  EXPECT_EQ(held, lease_.needed_for(mib(46)));
  EXPECT_EQ(held, lease_.needed_for(mib(1)));
  // A larger one needs what it is larger by, not all of itself.
  EXPECT_EQ(mib(53), lease_.needed_for(mib(50)));
}

TEST_F(LeaseTest, KeepsBytesOfALargeBatchAsRoomForSmallOnes) {
  batch(mib(46), mib(48), mib(45));
  batch(mib(1), mib(48), mib(1));
  EXPECT_EQ(mib(3), lease_.slack());
  EXPECT_EQ(mib(51), lease_.amount());
}

TEST_F(LeaseTest, StartsFromTheFirstSlackAgainFarAboveWhatWasMeasured) {
  batch(mib(10), mib(11), mib(10));
  EXPECT_EQ(mib(1), lease_.slack());
  EXPECT_EQ(mib(13), lease_.needed_for(mib(12)));
  EXPECT_EQ(mib(88), lease_.needed_for(mib(80)));
}

TEST_F(LeaseTest, RefusesBeyondTheBudgetAndStaysAsItWas) {
  EXPECT_EQ(mib(192) - Bytes(mib(200).count() / 32), lease_.largest_grant());
  EXPECT_EQ("over_budget", lease_.begin(mib(193)).reason());
  EXPECT_EQ(Bytes(), lease_.amount());
  EXPECT_EQ(Bytes(), lease_.grant());
  EXPECT_TRUE(lease_.begin(mib(192)).is_ok());
}

TEST_F(LeaseTest, LargestGrantAlwaysBeginsAndLittleMoreDoesNot) {
  for (const Bytes free : {Bytes(), mib(1), mib(4), mib(7), mib(9), mib(60)}) {
    Budget budget("host", mib(13) + free);
    Lease lease(budget.root(), kReady, mib(300));
    ASSERT_TRUE(lease.begin(mib(4)).is_ok());
    lease.end(kReady + mib(12), mib(10));
    const Bytes largest = lease.largest_grant();
    const Bytes cushion((mib(13) + free).count() / 32);
    EXPECT_FALSE(lease.begin(largest + cushion + Bytes(1)).is_ok()) << format_bytes(free);
    EXPECT_TRUE(lease.begin(largest).is_ok()) << format_bytes(free);
  }
}

TEST_F(LeaseTest, RecordsAReadingEvenAboveTheBudget) {
  ASSERT_TRUE(lease_.begin(mib(150)).is_ok());
  lease_.end(kReady + mib(240), mib(150));
  EXPECT_EQ(mib(240), lease_.amount());
  EXPECT_EQ(mib(240), budget_.root().used());
  EXPECT_EQ(Bytes(), budget_.root().available());
}

TEST_F(LeaseTest, WhatIsOverTheBudgetIsNoRoom) {
  ASSERT_TRUE(lease_.begin(mib(150)).is_ok());
  lease_.end(kReady + mib(240), mib(150));
  // 240 are resident where 200 are allowed: of the 150 + 90 of overhead, 40 have to go.
  EXPECT_EQ(mib(110) - Bytes(mib(200).count() / 32), lease_.largest_grant());
  EXPECT_EQ("over_budget", lease_.begin(mib(110) + Bytes(1)).reason());
  EXPECT_EQ(Bytes(), lease_.grant());
  EXPECT_TRUE(lease_.begin(mib(110)).is_ok());
}

TEST_F(LeaseTest, RemembersTheMostThatSlackEverWas) {
  batch(mib(10), mib(22), mib(10));
  EXPECT_EQ(mib(12), lease_.highest_slack());
  batch(mib(50), mib(52), mib(50));
  EXPECT_EQ(mib(2), lease_.slack());
  EXPECT_EQ(mib(12), lease_.highest_slack()) << "a server that runs small batches only would see it";
}

TEST_F(LeaseTest, WhatTheModelKeepsIsNoRoomForTheNextBatch) {
  batch(mib(50), mib(52), mib(50));
  EXPECT_EQ(mib(2), lease_.slack());
  lease_.keep(mib(10));  // of the 50
  EXPECT_EQ(mib(62), lease_.needed_for(mib(50)));
  batch(mib(50), mib(62), mib(50));
  EXPECT_EQ(mib(2), lease_.slack()) << "kept bytes are no overhead";
  EXPECT_EQ(mib(50), lease_.highest_peak());
  const Bytes before = lease_.largest_grant();
  lease_.keep(mib(50));
  EXPECT_EQ(before - mib(40), lease_.largest_grant());
}

TEST_F(LeaseTest, RisesByAnObservationInTheMiddleOfABatch) {
  ASSERT_TRUE(lease_.begin(mib(10)).is_ok());
  lease_.observe(kReady + mib(30));
  EXPECT_EQ(mib(30), lease_.amount());
  lease_.observe(kReady + mib(5));
  EXPECT_EQ(mib(30), lease_.amount());
  lease_.end(kReady + mib(25), mib(9));
  EXPECT_EQ(mib(30), lease_.amount());
}

TEST_F(LeaseTest, SettlesToWhatIsResidentAfterTrim) {
  batch(mib(60), mib(63), mib(60));
  lease_.settle(kReady + mib(10));
  EXPECT_EQ(mib(10), lease_.amount());
  EXPECT_EQ(mib(10), budget_.root().used());
  // The tensor bytes went back to the kernel: they are no longer free to use, but their overhead is known.
  EXPECT_EQ(mib(63), lease_.needed_for(mib(60)));
}

// Seen with small batches of many sizes, each of which left its own pages behind.
TEST_F(LeaseTest, PagesThatATrimGaveBackDoNotKeepALargeBatchOutForEver) {
  Budget budget("host", mib(20));
  Lease lease(budget.root(), kReady, mib(300));
  Bytes resident;
  for (const Bytes peak : {mib(1), mib(2), mib(3), mib(4)}) {
    resident += peak + mib(2);
    ASSERT_TRUE(lease.begin(peak).is_ok());
    lease.end(kReady + resident, peak);
  }
  ASSERT_EQ(mib(14), lease.slack());
  ASSERT_LT(lease.largest_grant(), mib(10));
  EXPECT_GE(lease.largest_grant_when_trimmed(), mib(10));
  lease.settle(kReady + mib(1));
  EXPECT_GE(lease.largest_grant(), mib(10));
  EXPECT_TRUE(lease.begin(mib(10)).is_ok());
  EXPECT_EQ(mib(19), lease.amount()) << "what is resident, the tensors, and 8 for what comes with them";
}

TEST_F(LeaseTest, WhatABatchGrewByBeyondItsTensorsIsAllowedForAfterATrim) {
  batch(mib(10), mib(30), mib(10));
  batch(mib(50), mib(95), mib(50));
  ASSERT_EQ(mib(45), lease_.slack());
  ASSERT_EQ(mib(98), lease_.needed_for(mib(53)));
  lease_.settle(kReady + mib(1));
  EXPECT_EQ(mib(74), lease_.needed_for(mib(53))) << "1 is resident, 20 was the most beyond";
}

TEST_F(LeaseTest, LearnsTheOverheadOfAWorkerThatFreesAtOnce) {
  ASSERT_TRUE(lease_.begin(mib(60)).is_ok());
  lease_.end(kReady + mib(2), mib(60), kReady + mib(65));
  EXPECT_EQ(mib(5), lease_.slack());
  EXPECT_EQ(mib(3), lease_.amount()) << "2 are resident, and the smallest rest";
  EXPECT_EQ(mib(65), lease_.needed_for(mib(60)));
}

TEST_F(LeaseTest, TheHighWaterMarkOfALargeBatchIsNoGrowthOfTheSmallOnesThatFollow) {
  ASSERT_TRUE(lease_.begin(mib(60)).is_ok());
  lease_.end(kReady + mib(2), mib(60), kReady + mib(65));
  ASSERT_TRUE(lease_.begin(mib(1)).is_ok());
  lease_.end(kReady + mib(2), mib(1), kReady + mib(65));
  lease_.settle(kReady + mib(2));
  EXPECT_EQ(mib(65), lease_.needed_for(mib(60))) << "not 2, 60, and 62";
}

TEST_F(LeaseTest, SettlesNeverBelowARunningGrant) {
  ASSERT_TRUE(lease_.begin(mib(40)).is_ok());
  lease_.settle(kReady);
  EXPECT_EQ(mib(48), lease_.amount());
}

TEST_F(LeaseTest, GivesEverythingBackWhenItGoesAway) {
  {
    Lease other(budget_.root().child("other"), kReady, mib(300));
    ASSERT_TRUE(other.begin(mib(20)).is_ok());
  }
  EXPECT_EQ(Bytes(), budget_.root().used());
}

TEST_F(LeaseTest, LimitsDataByLeaseAndMargin) {
  EXPECT_EQ(mib(364), lease_.data_limit());
  batch(mib(30), mib(30), mib(30));
  const Bytes expected = mib(300) + lease_.amount();
  EXPECT_EQ(expected + mib(64), lease_.data_limit());
}

TEST_F(LeaseTest, ChargesEachByteOfACappedWorkerWithItsFactor) {
  Lease capped(budget_.root().child("capped"), kReady, mib(300), 1.25);
  EXPECT_EQ(mib(125), capped.needed_for(mib(92))) << "92 and the first slack of 8";
  ASSERT_TRUE(capped.begin(mib(92)).is_ok());
  EXPECT_EQ(mib(125), capped.amount());
  capped.end(kReady + mib(80), mib(50));
  EXPECT_EQ(mib(100 + 5), capped.amount()) << "80 resident, and a rest of 1/16";
  capped.observe(kReady + mib(100));
  EXPECT_EQ(mib(125), capped.amount());
  capped.settle(kReady + mib(20));
  EXPECT_EQ(mib(25), capped.amount());
}

TEST_F(LeaseTest, ReadsACappedWorkerAfterEveryBatch) {
  Lease capped(budget_.root().child("capped"), kReady, mib(300), 1.1);
  ASSERT_TRUE(capped.begin(mib(40)).is_ok());
  capped.end(kReady + mib(50), mib(40));
  EXPECT_TRUE(capped.needs_reading(mib(1))) << "memory that is not tensors may grow in any batch";
}

TEST_F(LeaseTest, LargestGrantOfACappedWorkerBegins) {
  for (const Bytes free : {mib(1), mib(9), mib(60), mib(61) + Bytes(1)}) {
    Budget budget("host", mib(15) + free);
    Lease capped(budget.root(), kReady, mib(300), 1.1);
    ASSERT_TRUE(capped.begin(mib(4)).is_ok());
    capped.end(kReady + mib(12), mib(10));
    const Bytes largest = capped.largest_grant();
    EXPECT_TRUE(capped.begin(largest).is_ok()) << format_bytes(free);
  }
}

TEST_F(LeaseTest, NeedsNoReadingInsideWhatIsKnownToBeResident) {
  EXPECT_TRUE(lease_.needs_reading(mib(10)));
  batch(mib(10), mib(12), mib(10));
  EXPECT_FALSE(lease_.needs_reading(mib(10)));
  EXPECT_TRUE(lease_.needs_reading(mib(20)));
}

TEST(DeviceLease, NeverPlansWithLessSlackThanASegmentThatTheAllocatorMayTakeBeyondAGrant) {
  Budget budget("cuda:0", mib(200));
  constexpr Bytes kSegment = mib(20);
  Lease lease(budget.root().child("lease"), kReady, Bytes(), 1.0, kSegment);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(lease.begin(mib(50)).is_ok());
    EXPECT_GE(lease.amount(), mib(70));
    lease.end(kReady + mib(50), mib(50));
  }
  EXPECT_EQ(kSegment, lease.slack());
  EXPECT_LE(lease.largest_grant() + kSegment, mib(200));
}

}  // namespace
}  // namespace tonnage::memory
