// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/restart_policy.h"

#include <gtest/gtest.h>

namespace tonnage::supervisor::detail {
namespace {

constexpr TimePoint kStart{seconds(1000)};

Duration delay_after_death(RestartPolicy& policy, TimePoint now) {
  policy.on_death(now);
  return policy.next_start() - now;
}

TEST(RestartPolicy, WaitsHalfASecondAndDoublesToThirty) {
  RestartPolicy policy;
  TimePoint now = kStart;
  for (const Duration expected :
       {Duration(milliseconds(500)), Duration(seconds(1)), Duration(seconds(2)), Duration(seconds(4)),
        Duration(seconds(8)), Duration(seconds(16)), Duration(seconds(30)), Duration(seconds(30))}) {
    EXPECT_EQ(expected, delay_after_death(policy, now));
    EXPECT_FALSE(policy.is_broken());
    now += seconds(40);  // slow loads: never five deaths within 60 s
  }
}

TEST(RestartPolicy, StartsFromHalfASecondAfterAQuietMinute) {
  RestartPolicy policy;
  policy.on_death(kStart);
  policy.on_death(kStart + seconds(1));
  policy.on_ready(kStart + seconds(2));
  EXPECT_EQ(seconds(2), delay_after_death(policy, kStart + seconds(61)));
  policy.on_ready(kStart + seconds(70));
  EXPECT_EQ(milliseconds(500), delay_after_death(policy, kStart + seconds(130)));
}

TEST(RestartPolicy, BreaksAtFiveDeathsInAMinuteAndProbesEveryMinute) {
  RestartPolicy policy;
  for (int i = 0; i < 4; ++i) policy.on_death(kStart + seconds(i));
  EXPECT_FALSE(policy.is_broken());
  EXPECT_EQ(seconds(60), delay_after_death(policy, kStart + seconds(60)));
  EXPECT_TRUE(policy.is_broken());
  EXPECT_EQ(seconds(60), delay_after_death(policy, kStart + seconds(121)));
  EXPECT_TRUE(policy.is_broken());
}

TEST(RestartPolicy, ClosesTheBreakerWhenAProbeIsReady) {
  RestartPolicy policy;
  for (int i = 0; i < 5; ++i) policy.on_death(kStart);
  policy.on_ready(kStart + seconds(61));
  EXPECT_FALSE(policy.is_broken());
  EXPECT_EQ(milliseconds(500), delay_after_death(policy, kStart + seconds(62)));
}

TEST(RestartPolicy, ForgetsAForgivenDeath) {
  RestartPolicy policy;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(milliseconds(500), delay_after_death(policy, kStart + seconds(i)));
    policy.forgive_last();
    EXPECT_FALSE(policy.is_broken());
  }
}

TEST(RestartPolicy, ForgivesTheLastDeathOnlyOnce) {
  RestartPolicy policy;
  for (int i = 0; i < 5; ++i) policy.on_death(kStart);
  policy.forgive_last();
  EXPECT_FALSE(policy.is_broken());
  policy.forgive_last();
  policy.on_death(kStart);
  EXPECT_TRUE(policy.is_broken());
}

}  // namespace
}  // namespace tonnage::supervisor::detail
