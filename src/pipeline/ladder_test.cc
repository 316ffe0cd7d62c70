// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace tonnage::pipeline {
namespace {

constexpr TimePoint kStart(seconds(1000));

void clean(Ladder& ladder, std::uint32_t n, TimePoint now = kStart) {
  for (std::uint32_t i = 0; i < n; ++i) ladder.clean_batch(now);
}

// Two events of one cause: one step, unless a probe fails at the first.
void go_down(Ladder& ladder, Trouble cause = Trouble::kOverGrant) {
  if (!ladder.trouble(cause, ladder.max_rows())) ladder.trouble(cause, ladder.max_rows());
}

TEST(Ladder, OneEventMovesNothingASecondSoonAfterGoesDown) {
  Ladder ladder(64);
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant, 64));
  EXPECT_EQ(Rung::kFull, ladder.rung());
  clean(ladder, 10);
  EXPECT_TRUE(ladder.trouble(Trouble::kOverGrant, 64));
  EXPECT_EQ(Rung::kCachesReleased, ladder.rung());
}

TEST(Ladder, DifferentCausesOrEventsFarApartMoveNothing) {
  Ladder ladder(64);
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant, 64));
  EXPECT_FALSE(ladder.trouble(Trouble::kPressure, 64));
  clean(ladder, Ladder::kWindow);
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant, 64));
  EXPECT_EQ(0U, ladder.step());
}

TEST(Ladder, GoesDownRungByRung) {
  const struct {
    Rung rung;
    std::uint32_t rows;
  } rungs[] = {{Rung::kFull, 8},    {Rung::kCachesReleased, 8}, {Rung::kLowered, 4},
               {Rung::kLowered, 2}, {Rung::kSingle, 1},         {Rung::kResting, 0}};
  Ladder ladder(8);
  for (const auto& [rung, rows] : rungs) {
    EXPECT_EQ(rung, ladder.rung()) << rung_name(ladder.rung());
    EXPECT_EQ(rows, ladder.max_rows());
    go_down(ladder);
  }
  EXPECT_TRUE(ladder.is_resting()) << "there is nothing below";
  EXPECT_FALSE(ladder.trouble(Trouble::kOverGrant, 1));
}

TEST(Ladder, AModelOfSingleRowsReleasesCachesThenRests) {
  Ladder ladder(1);
  go_down(ladder);
  EXPECT_EQ(Rung::kCachesReleased, ladder.rung());
  go_down(ladder);
  EXPECT_EQ(Rung::kResting, ladder.rung());
}

TEST(Ladder, SkipsHalvingsThatTheFailedBatchWouldNotFeel) {
  Ladder ladder(64);
  go_down(ladder);
  ladder.trouble(Trouble::kOverGrant, 8);
  ladder.trouble(Trouble::kOverGrant, 8);
  EXPECT_EQ(4U, ladder.max_rows());
}

TEST(Ladder, ABatchOfOneRowLowersTheCeilingByOneStepOnly) {
  Ladder ladder(64);
  go_down(ladder);
  ladder.trouble(Trouble::kOverGrant, 1);
  ladder.trouble(Trouble::kOverGrant, 1);
  EXPECT_EQ(32U, ladder.max_rows());
}

TEST(Ladder, ARestingModelTriesAgainAfterRequestsOrTime) {
  Ladder ladder(1);
  while (!ladder.is_resting()) go_down(ladder);
  for (std::uint32_t i = 0; i < Ladder::kWindow; ++i) ladder.turned_away(kStart);
  EXPECT_EQ(1U, ladder.max_rows());
  ladder.trouble(Trouble::kPressure, 1);
  EXPECT_TRUE(ladder.is_resting()) << "a probe fails at once";
  ladder.time_to_probe(kStart);
  EXPECT_EQ(1U, ladder.max_rows());
}

TEST(Ladder, ClimbsAfterCleanBatchesAndAFailedProbeDoublesTheWait) {
  Ladder ladder(64);
  go_down(ladder);
  clean(ladder, Ladder::kWindow);
  EXPECT_EQ(0U, ladder.step());
  EXPECT_TRUE(ladder.trouble(Trouble::kOverGrant, 64)) << "a probe fails at once";
  EXPECT_EQ(1U, ladder.step());
  clean(ladder, 2 * Ladder::kWindow - 1);
  EXPECT_EQ(1U, ladder.step());
  clean(ladder, 1);
  EXPECT_EQ(0U, ladder.step());
}

TEST(Ladder, ARestoredCeilingIsAHintThatIsProbed) {
  Ladder before(64);
  for (int i = 0; i < 4; ++i) go_down(before);
  EXPECT_EQ(8U, before.learned_ceiling());
  Ladder ladder(64);
  ladder.restore(before.learned_ceiling());
  EXPECT_EQ(8U, ladder.max_rows());
  clean(ladder, Ladder::kWindow);
  EXPECT_EQ(16U, ladder.max_rows());
  EXPECT_EQ(16U, ladder.learned_ceiling());
  ladder.restore(1);
  EXPECT_EQ(1U, ladder.max_rows()) << "never restored into resting";
  ladder.restore(1000);
  EXPECT_EQ(0U, ladder.step());
}

TEST(Ladder, PressureTeachesNoCeiling) {
  Ladder ladder(64);
  for (int i = 0; i < 3; ++i) go_down(ladder, Trouble::kPressure);
  EXPECT_EQ(16U, ladder.max_rows());
  EXPECT_EQ(0U, ladder.learned_ceiling());
}

TEST(Ladder, AModelThatLearnedNoCeilingMayHaveMoreRowsAfterARestart) {
  Ladder larger(16);
  larger.restore(Ladder(8).learned_ceiling());
  EXPECT_EQ(16U, larger.max_rows());
}

// Batches of 5 ms for two hours, good and bad in turn; moves per minute of the second hour.
double moves_per_minute(Duration good, Duration bad, std::uint64_t seed) {
  constexpr Duration kBatch = milliseconds(5);
  constexpr Duration kHour = seconds(3600);
  Ladder ladder(64);
  Random luck(seed);
  std::uint32_t moves = 0;
  for (Duration at{}; at < 2 * kHour; at += kBatch) {
    const TimePoint now = kStart + at;
    const std::uint32_t before = ladder.step();
    const bool is_bad = at % (good + bad) >= good && luck.unit() < 0.9;
    if (ladder.is_resting()) {
      ladder.turned_away(now);
    } else if (is_bad) {
      ladder.trouble(luck.unit() < 0.5 ? Trouble::kOverGrant : Trouble::kPressure, ladder.max_rows());
    } else {
      ladder.clean_batch(now);
    }
    if (at >= kHour && ladder.step() != before) ++moves;
  }
  return moves / 60.0;
}

TEST(Ladder, MovesLessThanOnceAMinuteHoweverGoodAndBadAlternate) {
  std::uint64_t seed = 1;
  for (const int good : {10, 200, 1000, 20'000, 150'000, 600'000}) {
    for (const int bad : {10, 200, 1000, 20'000, 150'000}) {
      EXPECT_LT(moves_per_minute(milliseconds(good), milliseconds(bad), seed++), 1.0)
          << good << " ms good, " << bad << " ms bad";
    }
  }
}

}  // namespace
}  // namespace tonnage::pipeline
