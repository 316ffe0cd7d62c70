// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure/warm_up.h"

#include <gtest/gtest.h>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::PipelineRig;
using testkit::sum_spec;

// Added, loaded, and in the middle of its profiling.
void serve_until_warming(PipelineRig& rig) {
  ASSERT_TRUE(rig.pipe->add_model(sum_spec()).is_ok());
  while (rig.model().phase == ModelPhase::kLoading) rig.loop.advance(milliseconds(1));
  ASSERT_EQ(ModelPhase::kWarmingUp, rig.model().phase);
}

void advance_until_ready(PipelineRig& rig) {
  for (int i = 0; i < 10000 && rig.model().phase != ModelPhase::kReady; ++i)
    rig.loop.advance(milliseconds(5));
}

std::uint64_t runs_of_a_calm_warm_up() {
  PipelineRig rig;
  serve_until_warming(rig);
  advance_until_ready(rig);
  return rig.processes.runs();
}

TEST(WarmUp, WhatWasLearnedBeforeAKillForMemoryIsNotLearnedAgain) {
  for (const std::uint64_t kill_at : {4U, 9U, 15U}) {
    PipelineRig rig;
    std::uint64_t runs = 0;
    rig.processes.model.fault = [&](const FakeBatch&) {
      return ++runs == kill_at ? FakeFault::kMemoryKill : FakeFault::kNone;
    };
    serve_until_warming(rig);
    advance_until_ready(rig);
    EXPECT_EQ(ModelPhase::kReady, rig.model().phase);
    EXPECT_EQ(2U, rig.processes.starts());
    EXPECT_LE(runs, runs_of_a_calm_warm_up() + 2) << "killed in run " << kill_at;
  }
}

TEST(WarmUp, AShapeThatTakesItsWorkerAlongEachTimeIsLeftOut) {
  PipelineRig rig;
  int deaths = 0;
  rig.processes.model.fault = [&](const FakeBatch& batch) {
    const bool is_fatal = batch.run.rows >= 16;
    deaths += is_fatal ? 1 : 0;
    return is_fatal ? FakeFault::kMemoryKill : FakeFault::kNone;
  };
  serve_until_warming(rig);
  for (int i = 0; i < 100 && rig.model().phase != ModelPhase::kReady; ++i) rig.loop.advance(seconds(1));
  EXPECT_EQ(ModelPhase::kReady, rig.model().phase) << rig.model().trouble.detail();
  EXPECT_EQ(2, deaths) << "once more with all there is; nothing as large after that";
  const auto outcome = rig.ask({1, 16, 5});
  rig.loop.advance(seconds(1));
  EXPECT_TRUE(outcome->status->is_ok());
}

TEST(WarmUp, AWorkerThatIsLostBetweenTwoShapesIsReplacedAndGoesOn) {
  PipelineRig rig;
  int runs = 0;
  rig.processes.model.outputs = [&](const FakeBatch& batch) {
    // Posted before the answer is given, so that it dies after it and before the next shape.
    if (++runs == 3) {
      rig.loop.post([&rig] { rig.processes.only().die({supervisor::ExitReason::Kind::kSignal, 9}); });
    }
    return testkit::row_sums(batch);
  };
  serve_until_warming(rig);
  advance_until_ready(rig);
  EXPECT_EQ(ModelPhase::kReady, rig.model().phase);
  EXPECT_EQ(2U, rig.processes.starts());
  EXPECT_LE(static_cast<std::uint64_t>(runs), runs_of_a_calm_warm_up() + 1);
  const auto outcome = rig.ask({1, 16, 5});
  rig.loop.advance(seconds(1));
  EXPECT_EQ(std::vector<float>{20}, outcome->values);
}

TEST(WarmUp, TheServerStopsInTheMiddleOfAShape) {
  PipelineRig rig;
  rig.processes.model.time = [](const FakeBatch&) { return seconds(1); };
  serve_until_warming(rig);
  rig.loop.advance(milliseconds(500));
  rig.pipe->stop();
  rig.loop.advance(seconds(10));
  EXPECT_TRUE(rig.processes.living().empty());
  EXPECT_EQ(1U, rig.processes.starts()) << "nothing is started again while the server stops";
}

TEST(WarmUp, IsTriedAgainWhereEveryShapeFailedButTheWorkerLives) {
  PipelineRig rig;
  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kThrow; };
  serve_until_warming(rig);
  while (rig.model().phase == ModelPhase::kWarmingUp) rig.loop.advance(milliseconds(5));
  EXPECT_FALSE(rig.model().accepts());
  EXPECT_NE(std::string::npos, rig.model().trouble.detail().find("the model threw"));

  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kNone; };
  advance_until_ready(rig);
  EXPECT_EQ(ModelPhase::kReady, rig.model().phase);
  EXPECT_TRUE(rig.model().trouble.is_ok());
  EXPECT_EQ(1U, rig.processes.starts()) << "on the worker that is there";
}

}  // namespace
}  // namespace tonnage::pipeline
