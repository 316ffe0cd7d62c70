// SPDX-License-Identifier: Apache-2.0
// Snapshots and the plans they must give, one rule each.
#include "planner/plan.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace tonnage::planner {
namespace {

constexpr TimePoint kNow{seconds(1000)};
using Indices = std::vector<std::uint16_t>;

// 1 ms per padded token and 10 ms per call; 1 KiB per padded token. Columns of 10 tokens, up to 100.
cost::CostTable linear_table(Duration per_call = milliseconds(10), std::uint32_t max_rows = 16) {
  cost::CostTable table(max_rows, 10, 100);
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    for (std::uint32_t rows = 1; rows <= max_rows; ++rows) {
      const std::uint32_t tokens = rows * table.length_of(column);
      table.set(rows, column, kib(tokens), per_call + milliseconds(tokens));
    }
  }
  return table;
}

PlannerRow row_of(std::uint32_t length, TimePoint deadline = kNever, Duration age = milliseconds(0)) {
  return {.length = length, .enqueued = kNow - age, .deadline = deadline};
}
std::vector<PlannerRow> rows_of(std::initializer_list<std::uint32_t> lengths) {
  std::vector<PlannerRow> rows;
  for (const std::uint32_t length : lengths) rows.push_back(row_of(length));
  return rows;
}

class PlanLane : public ::testing::Test {
 protected:
  PlanLane() {
    limits.cost = &cost;
    limits.free = gib(1);
    limits.max_batch_time = milliseconds(250);
    limits.max_age = milliseconds(500);
  }
  Plan plan(const std::vector<PlannerRow>& rows) { return plan_lane({.rows = rows}, limits, kNow, scratch); }
  static Indices batch(const Plan& plan) { return {plan.batch.begin(), plan.batch.end()}; }
  static Indices drops(const Plan& plan) { return {plan.drops.begin(), plan.drops.end()}; }

  cost::CostTable cost = linear_table();
  PlanLimits limits;
  PlanScratch scratch;
};

TEST_F(PlanLane, IsIdleOnlyWhenEmpty) {
  const Plan empty = plan({});
  EXPECT_EQ(Plan::Kind::kIdle, empty.kind);
  EXPECT_EQ(kNever, empty.wake_at);
  EXPECT_EQ(Plan::Kind::kRun, plan(rows_of({5})).kind);
}

TEST_F(PlanLane, TellsWhatTheBatchTakes) {
  const Plan run = plan({row_of(15, kNow + seconds(1)), row_of(18)});
  EXPECT_EQ((Indices{0, 1}), batch(run));
  EXPECT_EQ(2U, run.units);
  EXPECT_EQ(20U, run.length);
  EXPECT_EQ(kib(40), run.grant);
  EXPECT_EQ(milliseconds(50), run.time);
  EXPECT_EQ(kNow + milliseconds(950), run.must_start_by);
}

TEST_F(PlanLane, KeepsLengthsApartWherePaddingCostsMoreThanACall) {
  // 4 rows of 10 with one of 100: together 10 + 500 ms, apart 50 + 110 ms.
  EXPECT_EQ((Indices{1, 2, 3, 4}), batch(plan(rows_of({100, 10, 10, 10, 10}))));
  // 10 and 20 together cost 50 ms, apart 20 + 30: equal sums; the group that holds the oldest wins.
  EXPECT_EQ(0U, plan(rows_of({10, 20})).batch.front());
}

TEST_F(PlanLane, RunsTheGroupWithTheMostRowsPerSecondFirst) {
  EXPECT_EQ((Indices{1, 2}), batch(plan(rows_of({90, 10, 10}))));
}

TEST_F(PlanLane, StopsAtTheKnee) {
  // Per call 10, per row 10: 97 % of the rate of 16 rows (16/170) is reached at 11 (11/120).
  const Plan run = plan(std::vector<PlannerRow>(16, row_of(10)));
  EXPECT_EQ(11U, run.units);
}

TEST_F(PlanLane, GrowsBeyondTheKneeWhenABacklogIsPastItsDeadlines) {
  std::vector<PlannerRow> rows(16, row_of(10));
  rows.push_back(row_of(10, kNow - milliseconds(1)));
  const Plan run = plan(rows);
  EXPECT_EQ(16U, run.units);
  EXPECT_EQ((Indices{16}), drops(run));
}

TEST_F(PlanLane, GrowsBeyondTheKneeWhenThatSavesADeadline) {
  // 16 rows end after 170 ms; 11 of them after 120, and then not all of the other five in time.
  EXPECT_EQ(16U, plan(std::vector<PlannerRow>(16, row_of(10, kNow + milliseconds(170)))).units);
  EXPECT_EQ(12U, plan(std::vector<PlannerRow>(16, row_of(10, kNow + milliseconds(135)))).units);
}

TEST_F(PlanLane, DoesNotRunSmallBatchesToKeepEverybodyAlive) {
  // After one row each other one could still end alone (40 ms), but only three rows end in time at all.
  EXPECT_EQ(3U, plan(std::vector<PlannerRow>(16, row_of(10, kNow + milliseconds(45)))).units);
}

TEST_F(PlanLane, DropsWhatCannotBeAnsweredEvenAloneAndAtOnce) {
  const Plan run =
      plan({row_of(10, kNow + milliseconds(19)), row_of(10, kNow + milliseconds(20)), row_of(10, kNow)});
  EXPECT_EQ((Indices{0, 2}), drops(run));
  EXPECT_EQ((Indices{1}), batch(run));
}

TEST_F(PlanLane, JudgesDeadlinesByTheDriftedTime) {
  limits.drift = 2;
  EXPECT_EQ((Indices{0}), drops(plan({row_of(10, kNow + milliseconds(39))})));
  const Plan run = plan({row_of(10, kNow + milliseconds(40))});
  EXPECT_EQ((Indices{0}), batch(run));
  EXPECT_EQ(kNow, run.must_start_by);
  EXPECT_EQ(milliseconds(20), run.time) << "the predicted time itself stays as the table has it";
}

TEST_F(PlanLane, DropsOnlyWhenNothingElseIsLeft) {
  const Plan only = plan({row_of(10, kNow)});
  EXPECT_EQ(Plan::Kind::kIdle, only.kind);
  EXPECT_EQ((Indices{0}), drops(only));
}

TEST_F(PlanLane, RunsFirstWhatMustStartNow) {
  // The long row is slower per row, but cannot wait for another batch of the lane's bound.
  const Plan run = plan({row_of(10), row_of(10), row_of(100, kNow + milliseconds(300))});
  EXPECT_EQ((Indices{2}), batch(run));
}

TEST_F(PlanLane, RunsTheLeastSlackFirstOfWhatMustStartNow) {
  const Plan run = plan({row_of(50, kNow + milliseconds(280)), row_of(100, kNow + milliseconds(290))});
  EXPECT_EQ((Indices{1}), batch(run)) << "180 ms of slack against 220";
}

TEST_F(PlanLane, LeavesOutARowThatWouldMakeABatchLate) {
  // Three rows take 10 + 3 × 10 ms; the first ends in time only with one other.
  const Plan run = plan({row_of(10, kNow + milliseconds(30)), row_of(10), row_of(10)});
  EXPECT_EQ((Indices{0, 1}), batch(run));
}

TEST_F(PlanLane, RunsRowsOverAgeBeforeFasterOnes) {
  const Plan run = plan({row_of(100, kNever, milliseconds(501)), row_of(10), row_of(10)});
  EXPECT_EQ((Indices{0}), batch(run));
  EXPECT_EQ((Indices{1, 2}), batch(plan({row_of(100, kNever, milliseconds(500)), row_of(10), row_of(10)})));
}

TEST_F(PlanLane, PutsDeadlinesBeforeAge) {
  const Plan run = plan({row_of(100, kNever, seconds(5)), row_of(10, kNow + milliseconds(30))});
  EXPECT_EQ((Indices{1}), batch(run));
}

TEST_F(PlanLane, NeverExceedsTheBoundsButForASingleRow) {
  limits.max_batch_time = milliseconds(50);
  EXPECT_EQ(4U, plan(std::vector<PlannerRow>(9, row_of(10))).units);
  EXPECT_EQ(1U, plan(std::vector<PlannerRow>(9, row_of(100))).units) << "110 ms, but alone";
  limits.max_rows = 3;
  EXPECT_EQ(3U, plan(std::vector<PlannerRow>(9, row_of(10))).units);
  limits.free = kib(20);
  EXPECT_EQ(2U, plan(std::vector<PlannerRow>(9, row_of(10))).units);
}

TEST_F(PlanLane, LetsARowBeyondTheFreeBytesWait) {
  limits.free = kib(50);
  EXPECT_EQ((Indices{1}), batch(plan(rows_of({100, 10}))));
  const Plan wait = plan({row_of(100), row_of(100, kNow + milliseconds(400))});
  EXPECT_EQ(Plan::Kind::kWake, wait.kind);
  EXPECT_TRUE(wait.waits_for_memory);
  EXPECT_TRUE(wait.drops.empty());
  EXPECT_EQ(kNow + milliseconds(290) + Duration(1), wait.wake_at) << "then the second row is hopeless";
}

TEST_F(PlanLane, KeepsUnitsTogether) {
  limits.max_rows = 4;
  std::vector<PlannerRow> rows = rows_of({10, 10, 10});
  for (PlannerRow& row : rows) row.units = 3;
  const Plan run = plan(rows);
  EXPECT_EQ((Indices{0}), batch(run));
  EXPECT_EQ(3U, run.units);
  limits.max_rows = 7;  // the knee is at 6
  EXPECT_EQ((Indices{0, 1}), batch(plan(rows)));
}

TEST_F(PlanLane, RunsARequestBeyondALoweredCeilingAlone) {
  limits.max_rows = 1;
  std::vector<PlannerRow> rows = rows_of({10, 10});
  rows[0].units = 5;
  rows[0].enqueued -= seconds(1);
  EXPECT_EQ(5U, plan(rows).units);
  rows[0].units = 17;
  EXPECT_EQ((Indices{0}), drops(plan(rows))) << "more than the table knows can never run";
}

TEST_F(PlanLane, GroupsOnlyEqualLengths) {
  limits.meet = model::MeetRule::kGroup;
  const Plan run = plan(rows_of({13, 17, 13, 17, 17}));
  EXPECT_EQ((Indices{1, 3, 4}), batch(run));
  EXPECT_EQ(17U, run.length) << "nothing is padded";
}

TEST_F(PlanLane, RowsOfDifferentGroupsNeverMeet) {
  std::vector<PlannerRow> rows = rows_of({10, 10, 10, 10, 10});
  rows[1].group = rows[3].group = 70'000;
  EXPECT_EQ((Indices{0, 2, 4}), batch(plan(rows)));
  limits.policy = model::Policy::kFifo;
  EXPECT_EQ((Indices{0, 2, 4}), batch(plan(rows)));
}

TEST_F(PlanLane, RowsOfOneGroupMeetLikeRowsOfDifferentLength) {
  limits.lengths_are_padded = true;
  std::vector<PlannerRow> rows = rows_of({13, 11, 12});
  rows[1].group = 9;
  const Plan met = plan(rows);
  EXPECT_EQ((Indices{2, 0}), batch(met));
  EXPECT_EQ(13U, met.length) << "padded already, so not rounded to the column";
  EXPECT_EQ(kib(2 * 20), met.grant) << "but charged as the column";
}

TEST_F(PlanLane, WaitsToFillABatchNoLongerThanAskedFor) {
  limits.max_wait = milliseconds(20);
  const Plan wait = plan({row_of(10, kNever, milliseconds(5))});
  EXPECT_EQ(Plan::Kind::kWake, wait.kind);
  EXPECT_EQ(kNow + milliseconds(15), wait.wake_at);
  EXPECT_EQ(Plan::Kind::kRun, plan({row_of(10, kNever, milliseconds(20))}).kind);
  EXPECT_EQ(Plan::Kind::kRun, plan(std::vector<PlannerRow>(11, row_of(10))).kind) << "full at the knee";
}

TEST_F(PlanLane, WaitsNoLongerThanTheEarliestDeadlineAllows) {
  limits.max_wait = milliseconds(100);
  EXPECT_EQ(kNow + milliseconds(30), plan({row_of(10, kNow + milliseconds(50))}).wake_at);
  EXPECT_EQ(Plan::Kind::kRun, plan({row_of(10, kNow + milliseconds(20))}).kind);
}

TEST_F(PlanLane, WaitsForAWorkerUntilADeadlineForbidsIt) {
  limits.a_worker_is_idle = false;
  EXPECT_EQ(kNow + milliseconds(380), plan({row_of(10, kNow + milliseconds(400))}).wake_at);
  EXPECT_EQ(kNow + limits.max_age, plan(rows_of({10})).wake_at) << "never without a time to wake";
}

TEST_F(PlanLane, TakesTheFirstOfEqualRowsInTheOrderOfTheView) {
  limits.max_rows = 2;
  EXPECT_EQ((Indices{0, 1}), batch(plan(rows_of({10, 10, 10, 10}))));
}

TEST_F(PlanLane, PlansModelsWithoutALength) {
  cost = cost::CostTable(8, 32, 0);
  for (std::uint32_t rows = 1; rows <= 8; ++rows) cost.set(rows, 0, kib(rows), milliseconds(10));
  const Plan run = plan(rows_of({0, 0, 0}));
  EXPECT_EQ(3U, run.units);
  EXPECT_EQ(0U, run.length);
}

class PlanBuckets : public PlanLane {
 protected:
  PlanBuckets() {
    limits.policy = model::Policy::kBuckets;
    limits.edges = edges;
  }
  std::vector<std::uint32_t> edges{20, 40};
};

TEST_F(PlanBuckets, PadToTheirEdgeAndDoNotMix) {
  const Plan run = plan(rows_of({5, 19, 21, 40}));
  EXPECT_EQ((Indices{0, 1}), batch(run));
  EXPECT_EQ(20U, run.length);
}

TEST_F(PlanBuckets, PadToMultiplesOfTheLastEdgeAboveIt) {
  EXPECT_EQ(80U, plan(rows_of({41})).length);
  EXPECT_EQ(100U, plan(rows_of({81})).length) << "clipped to the model's length";
}

class PlanFifo : public PlanLane {
 protected:
  PlanFifo() { limits.policy = model::Policy::kFifo; }
};

TEST_F(PlanFifo, PadsTheOldestRowsToTheLongestWhateverTheTime) {
  limits.max_rows = 3;
  const Plan run = plan(rows_of({10, 100, 20, 10}));
  EXPECT_EQ((Indices{0, 1, 2}), batch(run));
  EXPECT_EQ(100U, run.length);
  EXPECT_EQ(milliseconds(310), run.time);
}

TEST_F(PlanFifo, ShrinksToTheFreeBytes) {
  limits.free = kib(100);
  EXPECT_EQ((Indices{0, 1}), batch(plan(rows_of({10, 10, 100, 10}))));
  limits.free = kib(90);
  EXPECT_EQ((Indices{1, 2}), batch(plan(rows_of({100, 10, 10}))));
}

TEST_F(PlanFifo, DropsTheHopelessToo) {
  EXPECT_EQ((Indices{0}), drops(plan({row_of(10, kNow), row_of(10)})));
}

}  // namespace
}  // namespace tonnage::planner
