// SPDX-License-Identifier: Apache-2.0
#include "planner/share.h"

#include <gtest/gtest.h>

namespace tonnage::planner {
namespace {

TEST(Share, IsTheWholeWhereThereIsRoomForAll) {
  EXPECT_DOUBLE_EQ(1.0, share_of_first({{1, 2}}, 2));
  EXPECT_DOUBLE_EQ(1.0, share_of_first({{1, 1}, {5, 1}}, 2));
}

TEST(Share, OfOneModelWithMoreWorkersThanTokensIsWhatCanRunAtOnce) {
  EXPECT_DOUBLE_EQ(0.5, share_of_first({{1, 4}}, 2));
}

TEST(Share, FollowsTheWeights) {
  EXPECT_DOUBLE_EQ(0.75, share_of_first({{3, 2}, {1, 2}}, 2));
  EXPECT_DOUBLE_EQ(0.25, share_of_first({{1, 2}, {3, 2}}, 2));
  EXPECT_DOUBLE_EQ(0.2, share_of_first({{1, 2}, {1, 2}, {3, 2}}, 2));
}

TEST(Share, GivesWhatOneDoesNotNeedToTheOthers) {
  EXPECT_DOUBLE_EQ(0.75, share_of_first({{1, 4}, {9, 1}}, 4)) << "three of the four tokens are left";
  EXPECT_DOUBLE_EQ(1.0, share_of_first({{9, 1}, {1, 4}}, 4));
}

}  // namespace
}  // namespace tonnage::planner
