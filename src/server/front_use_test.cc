// SPDX-License-Identifier: Apache-2.0
#include "server/front_use.h"

#include <gtest/gtest.h>

namespace tonnage::server {
namespace {

TEST(FrontUse, FollowsTheReadingsDownAgainAfterABurst) {
  FrontUseTracker tracker;
  EXPECT_EQ(mib(20), tracker.read(mib(20), Bytes(), true).base);
  EXPECT_EQ(mib(50), tracker.read(mib(80), mib(30), false).base);
  EXPECT_EQ(mib(21), tracker.read(mib(21), Bytes(), true).base) << "one burst is not for ever";
  EXPECT_EQ(Bytes(), tracker.read(mib(20), mib(30), false).base) << "charged is not yet touched";
}

TEST(FrontUse, AsksKeptPagesBackOnlyAtRestAndOnlyWhenTheyAreMany) {
  FrontUseTracker tracker;
  EXPECT_FALSE(tracker.read(mib(20), Bytes(), true).trim) << "the first reading is the measure";
  EXPECT_FALSE(tracker.read(mib(36), Bytes(), true).trim);
  EXPECT_FALSE(tracker.read(mib(60), Bytes(), false).trim) << "somebody is served";
  EXPECT_TRUE(tracker.read(mib(60), Bytes(), true).trim);
}

}  // namespace
}  // namespace tonnage::server
