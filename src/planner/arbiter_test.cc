// SPDX-License-Identifier: Apache-2.0
#include "planner/arbiter.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/random.h"

namespace tonnage::planner {
namespace {

Contender contender(std::uint32_t lane, Duration time, double weight = 1.0) {
  return {.lane = lane, .weight = weight, .time = time, .tokens = 1};
}

// Runs one batch after the other on a device with one token; seconds by lane.
std::array<double, 2> shares(const std::array<Contender, 2>& lanes, std::size_t batches) {
  Arbiter arbiter;
  std::array<double, 2> used{};
  for (std::size_t i = 0; i < batches; ++i) {
    const auto chosen = arbiter.choose(lanes, 1);
    if (!chosen) break;
    arbiter.charge(lanes.at(*chosen).lane, lanes.at(*chosen).time);
    used.at(*chosen) += to_seconds(lanes.at(*chosen).time);
  }
  return used;
}

TEST(Arbiter, DividesTimeByWeightWhenOneLaneHasLongBatches) {
  for (const auto& [heavy, light] : {std::pair{200, 7}, {7, 200}, {200, 200}, {1, 1}}) {
    const auto used =
        shares({contender(0, milliseconds(heavy), 3), contender(1, milliseconds(light), 1)}, 20000);
    EXPECT_NEAR(3.0, used[0] / used[1], 0.3) << heavy << " ms against " << light << " ms";
  }
}

TEST(Arbiter, KeepsTheShareInAnyWindowUpToAQuantumAndABatch) {
  Arbiter arbiter(milliseconds(50));
  const std::array lanes = {contender(0, milliseconds(5)), contender(1, milliseconds(200))};
  double ahead = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto chosen = arbiter.choose(lanes, 1);
    ASSERT_TRUE(chosen.has_value());
    arbiter.charge(lanes.at(*chosen).lane, lanes.at(*chosen).time);
    ahead += (*chosen == 0 ? 1 : -1) * to_seconds(lanes.at(*chosen).time);
    ASSERT_LE(std::abs(ahead), 0.250 + 1e-9) << "batch " << i;
  }
}

TEST(Arbiter, TakesTheEarliestMustStartInsideAShare) {
  Arbiter arbiter(milliseconds(50));
  std::array lanes = {contender(0, milliseconds(10)), contender(1, milliseconds(10)),
                      contender(2, milliseconds(10))};
  lanes[2].must_start_by = TimePoint(seconds(5));
  lanes[1].must_start_by = TimePoint(seconds(6));
  std::array<int, 3> served{};
  for (int i = 0; i < 5; ++i) {
    const auto chosen = arbiter.choose(lanes, 1);
    ASSERT_EQ(2U, chosen);
    arbiter.charge(2, milliseconds(10));
  }
  for (int i = 0; i < 10; ++i) {
    const auto chosen = arbiter.choose(lanes, 1);
    ++served.at(*chosen);
    arbiter.charge(static_cast<std::uint32_t>(*chosen), milliseconds(10));
  }
  EXPECT_EQ((std::array<int, 3>{5, 5, 0}), served) << "an urgent lane does not spend the others' shares";
}

TEST(Arbiter, TakesTurnsWhenNothingElseDecides) {
  Arbiter arbiter;
  const std::array lanes = {contender(0, milliseconds(10)), contender(1, milliseconds(10))};
  std::size_t previous = 1;
  for (int i = 0; i < 4; ++i) {
    const auto chosen = arbiter.choose(lanes, 1);
    ASSERT_NE(previous, *chosen);
    previous = *chosen;
    arbiter.charge(static_cast<std::uint32_t>(previous), milliseconds(10));
  }
}

TEST(Arbiter, NeverPicksABatchThatDoesNotFitTheFreeTokens) {
  Arbiter arbiter;
  std::array lanes = {contender(0, milliseconds(10)), contender(1, milliseconds(10))};
  lanes[0].tokens = 2;
  ASSERT_TRUE(arbiter.choose(lanes, 2).has_value());
  EXPECT_EQ(1U, arbiter.choose(lanes, 1));
  EXPECT_EQ(std::nullopt, arbiter.choose(lanes, 0));
  lanes[1].tokens = 0;
  EXPECT_EQ(1U, arbiter.choose(lanes, 0)) << "an idle-priority worker holds no token";
}

TEST(Arbiter, LetsTokensGatherForALaneThatNeedsSeveral) {
  Arbiter arbiter(milliseconds(50));
  std::array lanes = {contender(0, milliseconds(10)), contender(1, milliseconds(50))};
  lanes[1].tokens = 2;
  arbiter.charge(1, milliseconds(1));  // the device has two tokens; both lanes have contended before
  ASSERT_TRUE(arbiter.choose(lanes, 2).has_value());
  int small = 0;
  while (arbiter.choose(lanes, 1).has_value() && small < 100) {
    arbiter.charge(0, milliseconds(10));
    ++small;
  }
  EXPECT_LT(small, 12) << "small batches may not take every token that comes back";
  EXPECT_EQ(1U, arbiter.choose(lanes, 2));
}

TEST(Arbiter, GivesNobodyAShareWhileTheDeviceIsBusy) {
  Arbiter arbiter;
  const std::array lanes = {contender(0, milliseconds(5), 3), contender(1, milliseconds(200), 1)};
  std::array<double, 2> used{};
  for (int i = 0; i < 20000; ++i) {
    const std::size_t chosen = arbiter.choose(lanes, 1).value();
    arbiter.charge(lanes.at(chosen).lane, lanes.at(chosen).time);
    used.at(chosen) += to_seconds(lanes.at(chosen).time);
    // While one runs, the other one is asked for alone.
    ASSERT_EQ(std::nullopt, arbiter.choose({&lanes.at(1 - chosen), 1}, 0));
  }
  EXPECT_NEAR(3.0, used[0] / used[1], 0.3);
}

TEST(Arbiter, TreatsMoreTokensThanTheDeviceHasAsAllOfThem) {
  Arbiter arbiter;
  std::array lanes = {contender(0, milliseconds(10))};
  lanes[0].tokens = 16;
  EXPECT_EQ(0U, arbiter.choose(lanes, 2));
}

TEST(Arbiter, CorrectsAWrongPredictionWhenTheBatchHasEnded) {
  Arbiter arbiter;
  const std::array lanes = {contender(0, milliseconds(10)), contender(1, milliseconds(10))};
  std::array<double, 2> used{};
  for (int i = 0; i < 10000; ++i) {
    const auto chosen = *arbiter.choose(lanes, 1);
    const Duration actual = milliseconds(chosen == 0 ? 30 : 10);  // lane 0 lies
    arbiter.charge(static_cast<std::uint32_t>(chosen), milliseconds(10));
    arbiter.charge(static_cast<std::uint32_t>(chosen), actual - milliseconds(10));
    used.at(chosen) += to_seconds(actual);
  }
  EXPECT_NEAR(1.0, used[0] / used[1], 0.02);
}

TEST(Arbiter, NoLaneWaitsLongerThanTheBoundSays) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Contender> lanes;
    std::vector<double> since;  // when it began to wait
    for (std::uint32_t i = 0; i < 2 + static_cast<std::uint32_t>(round) % 4; ++i) {
      lanes.push_back(contender(i, milliseconds(random.between(1, 400)), 0.1 + 10 * random.unit()));
      since.push_back(0);
    }
    Arbiter arbiter;
    double now = 0;
    for (int i = 0; i < 500; ++i) {
      for (Contender& lane : lanes) {
        if (random.unit() < 0.1) lane.must_start_by = TimePoint(milliseconds(random.between(1, 1000)));
      }
      const std::size_t chosen = arbiter.choose(lanes, 1).value();
      ASSERT_LE(now - since[chosen], to_seconds(wait_bound(lanes, chosen)) + 1e-6) << round;
      arbiter.charge(lanes[chosen].lane, lanes[chosen].time);
      now += to_seconds(lanes[chosen].time);
      since[chosen] = now;
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      ASSERT_LE(now - since[i], to_seconds(wait_bound(lanes, i)) + 1e-6) << "lane " << i << " still waits";
    }
  }
}

TEST(Arbiter, ChoosesNothingFromNothing) {
  Arbiter arbiter;
  EXPECT_EQ(std::nullopt, arbiter.choose({}, 4));
}

}  // namespace
}  // namespace tonnage::planner
