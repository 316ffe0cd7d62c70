// SPDX-License-Identifier: Apache-2.0
// Workers that take long rows alone: the real pipeline on a manual clock.
#include <gtest/gtest.h>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::PipelineRig;

constexpr Duration kLong = milliseconds(400);
constexpr Duration kShort = milliseconds(5);

struct LongExecutor : testing::Test {
  LongExecutor() {
    rig.processes.model.time = [this](const FakeBatch& batch) {
      return batch.run.length > 512 ? kLong * slowdown : kShort;
    };
  }
  void serve(std::uint32_t long_workers) {
    model::ModelSpec spec = testkit::sum_spec(1024);
    spec.long_executor.count = long_workers;
    rig.serve(std::move(spec));
  }
  PipelineRig rig;
  int slowdown = 1;
};

TEST_F(LongExecutor, ALongRowDelaysNoShortRowWhereLongRowsHaveAWorkerOfTheirOwn) {
  serve(1);
  const auto longer = rig.ask({1, 800});
  rig.loop.advance(milliseconds(1));
  const auto shorter = rig.ask({1, 16});
  rig.loop.advance(kShort * 2);
  EXPECT_TRUE(shorter->is_answered()) << "the worker at idle priority holds no compute token";
  EXPECT_FALSE(longer->is_answered());
  rig.loop.advance(kLong);
  ASSERT_TRUE(longer->is_answered());
  EXPECT_TRUE(longer->status->is_ok()) << longer->status->to_string();
}

TEST_F(LongExecutor, WithoutOneAShortRowWaitsBehindALongOne) {
  serve(0);
  rig.ask({1, 800});
  rig.loop.advance(milliseconds(1));
  const auto shorter = rig.ask({1, 16});
  rig.loop.advance(kShort * 2);
  EXPECT_FALSE(shorter->is_answered());
}

TEST_F(LongExecutor, EachClassIsRunByItsOwnWorkersAlone) {
  serve(1);
  rig.ask({4, 800});
  rig.loop.advance(milliseconds(1));
  EXPECT_FALSE(rig.model().workers[0].in_flight.has_value());
  EXPECT_TRUE(rig.model().workers[1].in_flight.has_value());
  rig.loop.advance(seconds(5));
  rig.ask({256, 16});
  rig.loop.advance(milliseconds(1));
  EXPECT_TRUE(rig.model().workers[0].in_flight.has_value());
  EXPECT_FALSE(rig.model().workers[1].in_flight.has_value());
}

TEST_F(LongExecutor, RowsOfOneRequestInBothClassesAreAnsweredTogether) {
  serve(1);
  rig.processes.model.fault = [](const FakeBatch& batch) {
    return batch.run.length > 512 && batch.run.rows > 1 ? testkit::FakeFault::kThrow
                                                        : testkit::FakeFault::kNone;
  };
  const auto longer = rig.ask({3, 800});
  const auto shorter = rig.ask({3, 16});
  rig.loop.advance(seconds(10));
  EXPECT_TRUE(longer->status->is_ok()) << "a batch that failed is retried by a worker of its class";
  EXPECT_TRUE(shorter->status->is_ok());
}

TEST_F(LongExecutor, AnIdleWorkersPaceIsLearnedAndLeavesTheOthersTimesAlone) {
  serve(1);
  slowdown = 5;
  for (int i = 0; i < 30; ++i) {
    rig.ask({1, 800});
    rig.loop.advance(seconds(4));
  }
  EXPECT_GT(rig.model().workers[1].pace, 2.0);
  EXPECT_EQ(1.0, rig.model().workers[0].pace);
  EXPECT_NEAR(1.0, rig.model().cost->drift(), 0.2);
}

TEST_F(LongExecutor, AnIdleWorkersPaceCountsOnceInWhatANewRowWaitsFor) {
  const auto time_of = [this](const FakeBatch& batch) {
    return microseconds(500) * batch.run.rows * batch.run.length * (batch.run.length > 512 ? slowdown : 1);
  };
  rig.processes.model.time = time_of;
  serve(1);
  slowdown = 5;
  for (int i = 0; i < 30; ++i) {
    rig.ask({1, 800});
    rig.loop.advance(seconds(4));
  }
  ASSERT_NEAR(5, rig.model().pace(true), 1);
  rig.ask({1, 800});
  rig.loop.advance(milliseconds(1));
  const ServedModel& model = rig.model();
  const double wait = to_seconds(model.residual(rig.loop.now(), true)) * model.drift() * model.pace(true);
  EXPECT_NEAR(to_seconds(kLong * slowdown), wait, 0.4);
}

TEST_F(LongExecutor, PolicyFifoTakesRowsAsTheyComeAndStartsNoWorkerForLongOnes) {
  model::ModelSpec spec = testkit::sum_spec(1024);
  spec.long_executor.count = 1;
  spec.batching.policy = model::Policy::kFifo;
  rig.serve(std::move(spec));
  EXPECT_EQ(1U, rig.model().workers.size());
}

}  // namespace
}  // namespace tonnage::pipeline
