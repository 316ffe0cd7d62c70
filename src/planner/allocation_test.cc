// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "planner/plan.h"
#include "testkit/counting_new.h"
#include "testkit/traffic.h"

namespace tonnage::planner {
namespace {

constexpr TimePoint kNow{seconds(1000)};

TEST(PlanAllocation, IsNothingWhateverThePolicyAndThePressure) {
  if (!testkit::kCountsAllocations) GTEST_SKIP() << "not under the thread sanitizer (testkit/counting_new.h)";
  cost::CostTable cost(64, 32, 1024);
  for (std::uint32_t column = 0; column < cost.columns(); ++column) {
    for (std::uint32_t rows = 1; rows <= 64; ++rows)
      cost.set(rows, column, kib(rows), microseconds(rows * (column + 1)));
  }
  testkit::Traffic traffic(1, testkit::kLongTailedMix, 100, kNow);
  std::vector<PlannerRow> rows(kMaxWindow);
  PlanScratch scratch;
  const std::vector<std::uint32_t> edges{32, 64, 128, 256, 512};
  const std::uint64_t before = testkit::allocations_so_far.load();
  for (const auto policy : {model::Policy::kDp, model::Policy::kBuckets, model::Policy::kFifo}) {
    for (const Duration deadline : {milliseconds(0), milliseconds(2), milliseconds(5), milliseconds(60000)}) {
      for (PlannerRow& row : rows)
        row = {.length = traffic.length(), .enqueued = kNow, .deadline = kNow + deadline};
      const PlanLimits limits{.cost = &cost, .policy = policy, .edges = edges, .free = gib(1)};
      const Plan plan = plan_lane({.rows = rows}, limits, kNow, scratch);
      if (plan.batch.empty() && plan.drops.empty()) FAIL();
    }
  }
  EXPECT_EQ(before, testkit::allocations_so_far.load());
}

TEST(CountingNew, Counts) {
  if (!testkit::kCountsAllocations) GTEST_SKIP() << "not under the thread sanitizer (testkit/counting_new.h)";
  const std::uint64_t before = testkit::allocations_so_far.load();
  const std::vector<int> block(1000);
  EXPECT_EQ(before + 1, testkit::allocations_so_far.load());
  EXPECT_EQ(1000U, block.size());
}

}  // namespace
}  // namespace tonnage::planner
