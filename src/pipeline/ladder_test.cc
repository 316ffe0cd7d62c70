// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ladder.h"

#include <gtest/gtest.h>

namespace tonnage::pipeline {
namespace {

void clean(Ladder& ladder, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) ladder.clean_batch();
}

TEST(Ladder, OneEventMovesNothingASecondSoonAfterGoesDown) {
  Ladder ladder(64);
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant));
  EXPECT_EQ(64U, ladder.max_rows());
  clean(ladder, 10);
  EXPECT_TRUE(ladder.trouble(Trouble::kOverGrant));
  EXPECT_EQ(32U, ladder.max_rows());
}

TEST(Ladder, DifferentCausesOrEventsFarApartMoveNothing) {
  Ladder ladder(64);
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant));
  EXPECT_FALSE(ladder.trouble(Trouble::kPressure));
  clean(ladder, Ladder::kWindow);
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant));
  EXPECT_EQ(64U, ladder.max_rows());
}

TEST(Ladder, EndsWithABatchOfOneThenRefuses) {
  Ladder ladder(4);
  while (!ladder.is_refusing()) {
    ladder.trouble(Trouble::kPressure);
    if (ladder.step() == 2) {
      EXPECT_EQ(1U, ladder.max_rows());
    }
  }
  for (std::uint32_t i = 0; i < Ladder::kWindow; ++i) ladder.refused();
  EXPECT_EQ(1U, ladder.max_rows()) << "a refusing model must try again";
}

TEST(Ladder, ClimbsAfterCleanBatchesAndAFailedProbeDoublesTheWait) {
  Ladder ladder(64);
  ladder.trouble(Trouble::kOverGrant);
  ladder.trouble(Trouble::kOverGrant);
  clean(ladder, Ladder::kWindow);
  EXPECT_EQ(64U, ladder.max_rows());
  EXPECT_TRUE(ladder.trouble(Trouble::kOverGrant)) << "a probe fails at once";
  EXPECT_EQ(32U, ladder.max_rows());
  clean(ladder, 2 * Ladder::kWindow - 1);
  EXPECT_EQ(32U, ladder.max_rows());
  clean(ladder, 1);
  EXPECT_EQ(64U, ladder.max_rows());
}

TEST(Ladder, ARestoredCeilingIsAHintThatIsProbed) {
  Ladder ladder(64);
  ladder.restore(100);
  EXPECT_EQ(1U, ladder.max_rows());
  clean(ladder, Ladder::kWindow);
  EXPECT_EQ(2U, ladder.max_rows());
}

TEST(Ladder, AlternatingGoodAndBadConditionsMoveItLessAndLess) {
  Ladder ladder(64);
  int moves = 0;
  for (int i = 0; i < 20000; ++i) {
    // Bad whenever the full size is tried: the condition never really improves.
    const std::uint32_t before = ladder.step();
    if (ladder.max_rows() == 64 && i % 2 == 0) {
      ladder.trouble(Trouble::kOverGrant);
    } else {
      ladder.clean_batch();
    }
    moves += ladder.step() != before ? 1 : 0;
  }
  EXPECT_LT(moves, 30);
}

}  // namespace
}  // namespace tonnage::pipeline
