// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::Outcome;
using testkit::PipelineRig;
using testkit::sum_spec;

// The first id of each row of a batch.
std::vector<std::int64_t> first_ids(const FakeBatch& batch) {
  const wire::TensorLayout& layout = batch.run.inputs[0];
  const auto ids = as_elements<std::int64_t>(batch.input.subspan(layout.offset, layout.bytes));
  std::vector<std::int64_t> firsts;
  for (std::uint32_t row = 0; row < batch.run.rows; ++row) firsts.push_back(ids[row * batch.run.length]);
  return firsts;
}

bool holds(const FakeBatch& batch, std::int64_t id) {
  const auto firsts = first_ids(batch);
  return std::ranges::find(firsts, id) != firsts.end();
}

TEST(Pipeline, AnswersEachRowWithItsOwnResultInTheClientsOrder) {
  PipelineRig rig;
  rig.serve(sum_spec());
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 40; ++i) outcomes.push_back(rig.ask({1 + i % 3, 8 + 11 * i % 400, 100 + i}));
  rig.loop.advance(seconds(5));
  for (std::uint32_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(outcomes[i]->is_answered());
    ASSERT_TRUE(outcomes[i]->status->is_ok()) << outcomes[i]->status->to_string();
    const float expected = static_cast<float>(100 + i + (8 + 11 * i % 400) - 1);
    EXPECT_EQ(std::vector<float>(1 + i % 3, expected), outcomes[i]->values);
  }
  EXPECT_EQ(Bytes(), rig.envelopes());
}

TEST(Pipeline, MayGoWhileABatchRuns) {
  std::shared_ptr<Outcome> outcome;
  {
    PipelineRig rig;
    rig.serve(sum_spec());
    outcome = rig.ask({64, 16});
    rig.loop.advance(milliseconds(1));
    ASSERT_TRUE(rig.model().workers[0].in_flight.has_value());
  }
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_EQ("draining", outcome->status->reason());
}

TEST(Pipeline, ARequestOfManyRowsIsSpreadOverBatchesAndReassembled) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const auto outcome = rig.ask({200, 16, 7});
  rig.loop.advance(seconds(5));
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_EQ(std::vector<float>(200, 22.0F), outcome->values);
  EXPECT_GE(rig.model().stats.batches, 4U);
}

TEST(Pipeline, NoBatchHasMoreRowsThanAllowed) {
  PipelineRig rig;
  std::uint32_t most = 0;
  rig.processes.model.time = [&](const FakeBatch& batch) {
    most = std::max(most, batch.run.rows);
    return milliseconds(1);
  };
  model::ModelSpec spec = sum_spec();
  spec.batching.max_rows = 32;
  rig.serve(std::move(spec));
  for (int i = 0; i < 11; ++i) rig.ask({32, 16});
  rig.ask({31, 16});
  rig.loop.advance(seconds(5));
  EXPECT_LE(most, 32U);
}

TEST(Pipeline, OnePoisonRowCostsTwoDeathsAndIsRemembered) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.fault = [](const FakeBatch& batch) {
    return holds(batch, 666) ? FakeFault::kDie : FakeFault::kNone;
  };
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 64; ++i) outcomes.push_back(rig.ask({1, 16, i == 20 ? 666 : 1000 + i}));
  rig.loop.advance(seconds(30));
  for (std::uint32_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(outcomes[i]->is_answered()) << i;
    EXPECT_EQ(i != 20, outcomes[i]->status->is_ok()) << i << outcomes[i]->status->to_string();
  }
  EXPECT_EQ("poison_row", outcomes[20]->status->reason());
  EXPECT_EQ(2U, rig.model().workers[0].worker->deaths());

  const auto again = rig.ask({1, 16, 666});
  EXPECT_EQ("poison_row", again->status->reason()) << "remembered, and not run again";
  EXPECT_EQ(2U, rig.model().workers[0].worker->deaths());
}

TEST(Pipeline, AThrownErrorFailsOnlyItsOwnRow) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.fault = [](const FakeBatch& batch) {
    return holds(batch, 999) ? FakeFault::kThrow : FakeFault::kNone;
  };
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 64; ++i) outcomes.push_back(rig.ask({1, 16, i == 3 ? 999 : i}));
  rig.loop.advance(seconds(10));
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(i != 3, outcomes[i]->status->is_ok()) << i;
  EXPECT_EQ("model_error", outcomes[3]->status->reason());
}

TEST(Pipeline, OverGrantIsSplitAndRetriedWithoutMovingTheLadder) {
  PipelineRig rig;
  bool lies = false;
  rig.processes.model.peak = [&](const FakeBatch& batch) {
    return batch.run.rows > 16 && lies ? batch.run.grant * 3 : kib(64);
  };
  rig.serve(sum_spec());
  lies = true;  // large batches cost three times what was learned
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 32; ++i) outcomes.push_back(rig.ask({1, 16, i}));
  rig.loop.advance(seconds(10));
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  EXPECT_EQ(1U, rig.model().stats.over_grants);
  EXPECT_EQ(0U, rig.model().ladder.step());
}

TEST(Pipeline, ADeadlineIsKeptWhileABatchRunsAndWhileRowsWait) {
  PipelineRig rig;
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(5); };
  model::ModelSpec spec = sum_spec();
  spec.batching.max_rows = 1;
  rig.serve(std::move(spec));
  rig.processes.model.time = [](const FakeBatch&) { return seconds(9); };  // far beyond the prediction
  const auto running = rig.ask({1, 16, 1, seconds(2)});
  rig.loop.advance(milliseconds(10));
  const auto waiting = rig.ask({1, 16, 2, seconds(1)});
  rig.loop.advance(milliseconds(990));
  EXPECT_FALSE(waiting->is_answered());
  rig.loop.advance(milliseconds(11));
  ASSERT_TRUE(waiting->is_answered());
  EXPECT_EQ("deadline", waiting->status->reason());
  EXPECT_FALSE(running->is_answered());
  rig.loop.advance(seconds(1));
  ASSERT_TRUE(running->is_answered());
  EXPECT_EQ("deadline", running->status->reason());
  EXPECT_EQ(Bytes(), rig.envelopes());
}

TEST(Pipeline, AClientThatLeavesFreesItsRowsAndEnvelopeAtOnce) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(500); };
  rig.ask({1, 16});
  rig.loop.advance(milliseconds(1));
  auto outcome = std::make_shared<Outcome>();
  const request::RequestId id = rig.submit(outcome, {10, 16});
  const Bytes held = rig.envelopes();
  rig.pipe->cancel(id);
  EXPECT_EQ("cancelled", outcome->status->reason());
  EXPECT_EQ(0U, rig.model().waiting_rows());
  EXPECT_LT(rig.envelopes(), held);
}

TEST(Pipeline, EveryRequestIsAnsweredWhenTheWorkerIsKilledUnderLoad) {
  PipelineRig rig;
  rig.serve(sum_spec());
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 300; ++i) {
    outcomes.push_back(rig.ask({1, 16 + i, i}));
    rig.loop.advance(milliseconds(1));
    if (i == 100) rig.processes.only().die({supervisor::ExitReason::Kind::kSignal, 9});
  }
  rig.loop.advance(seconds(20));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  }
}

TEST(Pipeline, TheSecondStartProfilesNothing) {
  PipelineRig first;
  first.serve(sum_spec());
  const std::uint64_t profiled = first.processes.runs();
  EXPECT_GT(profiled, 3U);

  PipelineRig second;
  second.profiles.kept = first.profiles.kept;
  second.serve(sum_spec());
  EXPECT_EQ(0U, second.processes.runs());
  const auto outcome = second.ask({1, 16, 5});
  second.loop.advance(seconds(1));
  EXPECT_TRUE(outcome->status->is_ok());
}

TEST(Pipeline, TwoModelsUnderOneSmallBudgetNeverStarveEachOther) {
  PipelineRig rig(mib(120));
  // Each model's large batches need most of what is left beside the two bases.
  rig.processes.model.peak = [](const FakeBatch& batch) {
    return Bytes(batch.run.rows * batch.run.length) * 1024;
  };
  model::ModelSpec a = sum_spec();
  model::ModelSpec b = sum_spec();
  a.name = "a";
  b.name = "b";
  rig.serve(std::move(a));
  rig.serve(std::move(b));
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 200; ++i) {
    outcomes.push_back(rig.ask({1, 300 + i, 1, seconds(600), i % 2 == 0 ? "a" : "b"}));
  }
  rig.loop.advance(seconds(120));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  }
}

TEST(Pipeline, MemoryTroubleThatStaysEndsInRefusalAndClimbsBack) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kPressure; };
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 200; ++i) outcomes.push_back(rig.ask({1, 16}));
  rig.loop.advance(seconds(10));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_EQ(Code::kOverloaded, outcome->status->code());
    EXPECT_TRUE(outcome->status->retry_after_seconds().has_value());
  }
  EXPECT_FALSE(rig.model().is_ready()) << "readiness says so";

  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kNone; };
  std::shared_ptr<Outcome> last;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    last = rig.ask({1, 16});
    rig.loop.advance(milliseconds(20));
  }
  EXPECT_TRUE(last->status->is_ok()) << last->status->to_string();
  EXPECT_EQ(64U, rig.model().ladder.max_rows());
}

TEST(Pipeline, AModelThatCannotBeLoadedSaysWhyAndRefuses) {
  PipelineRig rig;
  rig.processes.model.load_failure = wire::Failed{"bad_model_file", "not a zip archive"};
  ASSERT_TRUE(rig.pipe->add_model(sum_spec()).is_ok());
  rig.loop.advance(milliseconds(300));
  EXPECT_FALSE(rig.model().is_ready());
  EXPECT_NE(std::string::npos, rig.model().trouble.detail().find("not a zip archive"));
  const auto outcome = rig.ask({1, 16});
  EXPECT_EQ("not_ready", outcome->status->reason());
}

TEST(Pipeline, WhatWaitsIsAnsweredWhenTheServerStops) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.time = [](const FakeBatch&) { return seconds(1); };
  const auto running = rig.ask({1, 16});
  rig.loop.advance(milliseconds(1));
  const auto waiting = rig.ask({1, 16});
  rig.pipe->stop();
  EXPECT_EQ("draining", running->status->reason());
  EXPECT_EQ("draining", waiting->status->reason());
}

}  // namespace
}  // namespace tonnage::pipeline
