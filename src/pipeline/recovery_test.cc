// SPDX-License-Identifier: Apache-2.0
#include "pipeline/recovery.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace tonnage::pipeline {
namespace {

using supervisor::RunFailure;

Group group_of(std::uint32_t n) {
  Group group;
  for (std::uint32_t i = 0; i < n; ++i) {
    lane::QueuedRow row;
    row.row = i;
    group.rows.push_back(row);
  }
  return group;
}

struct Tally {
  int runs = 0;
  int deaths = 0;
  std::vector<std::uint32_t> answered;
  std::vector<std::uint32_t> failed;
  Verdict verdict{};
};

// Runs groups until none is left; a group fails with `failure` when it holds the guilty row.
Tally run_all(Group first, std::uint32_t guilty, RunFailure failure) {
  Tally tally;
  std::deque<Group> todo;
  todo.push_back(std::move(first));
  while (!todo.empty()) {
    Group group = std::move(todo.front());
    todo.pop_front();
    ++tally.runs;
    const bool fails = std::ranges::any_of(group.rows, [&](const auto& row) { return row.row == guilty; });
    if (!fails) {
      for (const auto& row : group.rows) tally.answered.push_back(row.row);
      continue;
    }
    if (failure == RunFailure::kDied) ++tally.deaths;
    Recovery recovery = recover(std::move(group), failure, true);
    for (const auto& row : recovery.failed) tally.failed.push_back(row.row);
    if (!recovery.failed.empty()) tally.verdict = recovery.verdict;
    for (auto it = recovery.retry.rbegin(); it != recovery.retry.rend(); ++it)
      todo.push_front(std::move(*it));
  }
  return tally;
}

TEST(Recovery, AThrowingBatchOf64IsHalvedToItsGuiltyRow) {
  const Tally tally = run_all(group_of(64), 37, RunFailure::kModelError);
  EXPECT_EQ(63U, tally.answered.size());
  EXPECT_EQ(std::vector<std::uint32_t>{37}, tally.failed);
  EXPECT_LE(tally.runs, 2 * 6 + 1);
  EXPECT_EQ(Verdict::kModelError, tally.verdict);
}

TEST(Recovery, APoisonRowCostsExactlyTwoDeaths) {
  const Tally tally = run_all(group_of(64), 5, RunFailure::kDied);
  EXPECT_EQ(2, tally.deaths);
  EXPECT_EQ(63U, tally.answered.size());
  EXPECT_EQ(std::vector<std::uint32_t>{5}, tally.failed);
  EXPECT_EQ(Verdict::kPoison, tally.verdict);
}

TEST(Recovery, ARowThatWasAloneWhenItsWorkerDiedIsTriedOnceMore) {
  Recovery first = recover(group_of(1), RunFailure::kDied, true);
  ASSERT_EQ(1U, first.retry.size());
  EXPECT_TRUE(first.retry[0].suspect);
  EXPECT_FALSE(first.forgive_death);
  const Recovery second = recover(std::move(first.retry[0]), RunFailure::kDied, true);
  EXPECT_EQ(Verdict::kPoison, second.verdict);
  EXPECT_EQ(1U, second.failed.size());
}

TEST(Recovery, OverGrantSplitsThenTriesAloneThenRefuses) {
  const Tally tally = run_all(group_of(8), 3, RunFailure::kOverGrant);
  EXPECT_EQ(7U, tally.answered.size());
  EXPECT_EQ(Verdict::kNeverFits, tally.verdict);
  EXPECT_EQ(413, http_status(verdict_status(tally.verdict, "").code()));
}

TEST(Recovery, AWatchdogKillAndANonIdempotentModelAreNotRetried) {
  EXPECT_TRUE(recover(group_of(4), RunFailure::kWatchdog, true).retry.empty());
  const Recovery lost = recover(group_of(4), RunFailure::kDied, false);
  EXPECT_TRUE(lost.retry.empty());
  EXPECT_EQ(Verdict::kWorkerLost, lost.verdict);
}

}  // namespace
}  // namespace tonnage::pipeline
