// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rotation/policy.h"

#include <gtest/gtest.h>

namespace tonnage::pipeline {
namespace {

constexpr TimePoint kNow{seconds(1000)};

model::RotationOptions every_line() {
  model::RotationOptions options;
  options.resident_above = mib(100);
  options.max_age = seconds(3600);
  options.retention_within = seconds(300);
  return options;
}

// A healthy worker beside which a standby fits.
RotationState healthy() {
  RotationState state;
  state.resident = mib(50);
  state.resident_when_ready = mib(30);
  state.age = seconds(60);
  state.charge = mib(40);
  state.held = mib(50);
  state.available = mib(64);
  return state;
}

RotationStep step(const model::RotationOptions& options, const RotationState& state) {
  return decide_rotation(options, state, kNow).step;
}

TEST(RotationPolicy, AHealthyWorkerIsKept) {
  EXPECT_EQ(RotationStep::kKeep, step(every_line(), healthy()));
  EXPECT_EQ(RotationStep::kKeep, step({}, healthy()));
}

TEST(RotationPolicy, WithoutALineNothingButAnOperatorRotates) {
  model::RotationOptions no_lines;
  no_lines.retention_within = Duration{};
  RotationState state = healthy();
  state.resident = gib(100);
  state.age = seconds(1'000'000);
  state.full_in = Duration{};
  EXPECT_EQ(RotationStep::kKeep, step(no_lines, state));
  state.is_asked = true;
  EXPECT_EQ(RotationStep::kStart, step(no_lines, state));
}

TEST(RotationPolicy, EachReasonIsNamed) {
  RotationState state = healthy();
  state.age = seconds(3600);
  EXPECT_EQ(RotationReason::kAge, decide_rotation(every_line(), state, kNow).reason);
  state.full_in = seconds(300);
  EXPECT_EQ(RotationReason::kRetention, decide_rotation(every_line(), state, kNow).reason);
  state.resident = mib(101);
  EXPECT_EQ(RotationReason::kResident, decide_rotation(every_line(), state, kNow).reason);
  state.is_asked = true;
  EXPECT_EQ(RotationReason::kOperator, decide_rotation(every_line(), state, kNow).reason);
}

TEST(RotationPolicy, LinesAreCrossedNotTouched) {
  RotationState state = healthy();
  state.resident = mib(100);
  state.age = seconds(3600) - Duration(1);
  state.full_in = seconds(301);
  EXPECT_EQ(RotationStep::kKeep, step(every_line(), state));
}

TEST(RotationPolicy, OneAtATimeAndNotBeforeThePauseIsOver) {
  RotationState state = healthy();
  state.is_asked = true;
  state.another_runs = true;
  EXPECT_EQ(RotationStep::kWait, step({}, state));
  state.another_runs = false;
  state.not_before = kNow + Duration(1);
  EXPECT_EQ(RotationStep::kWait, step({}, state));
  state.not_before = kNow;
  EXPECT_EQ(RotationStep::kStart, step({}, state));
}

TEST(RotationPolicy, ALineBelowAFreshWorkerIsRefusedInsteadOfRotatingForEver) {
  RotationState state = healthy();
  state.resident = mib(150);
  state.resident_when_ready = mib(100);
  const RotationDecision decision = decide_rotation(every_line(), state, kNow);
  EXPECT_EQ(RotationStep::kRefuse, decision.step);
  EXPECT_EQ("line_too_low", decision.why);
}

TEST(RotationPolicy, WhatDoesNotFitIsRefusedOrDroppedAsTheModelSays) {
  RotationState state = healthy();
  state.is_asked = true;
  state.available = state.charge - Bytes(1);
  EXPECT_EQ(RotationStep::kRefuse, step({}, state));
  EXPECT_EQ("no_room", decide_rotation({}, state, kNow).why);
  model::RotationOptions drops;
  drops.when_tight = model::WhenTight::kDropThenLoad;
  EXPECT_EQ(RotationStep::kDrop, step(drops, state));
  state.held = Bytes();
  EXPECT_EQ(RotationStep::kRefuse, step(drops, state)) << "it would not fit without the old one either";
  state.available = state.charge;
  EXPECT_EQ(RotationStep::kStart, step(drops, state)) << "what fits is never dropped";
}

TEST(RotationPolicy, MemoryThatComesBackIsWaitedForAWhile) {
  RotationState state = healthy();
  state.is_asked = true;
  state.available = mib(30);
  state.returnable = mib(10);
  EXPECT_EQ(RotationStep::kMakeRoom, step({}, state));
  state.short_since = kNow - kMemoryPatience + Duration(1);
  EXPECT_EQ(RotationStep::kMakeRoom, step({}, state));
  state.short_since = kNow - kMemoryPatience;
  EXPECT_EQ(RotationStep::kRefuse, step({}, state));
}

TEST(RotationPolicy, ThePauseFollowsTheLoadTimeAndGrowsWithFailures) {
  EXPECT_EQ(milliseconds(200), rotation_pause(milliseconds(20), 0));
  EXPECT_EQ(seconds(40), rotation_pause(seconds(2), 1));
  EXPECT_EQ(seconds(1), rotation_pause(Duration{}, 1)) << "a standby that fails at once is not tried at once";
  EXPECT_EQ(seconds(3600), rotation_pause(seconds(60), 30));
}

}  // namespace
}  // namespace tonnage::pipeline
