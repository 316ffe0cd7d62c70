// SPDX-License-Identifier: Apache-2.0
// Models that come and go while others serve.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::Outcome;
using testkit::PipelineRig;
using testkit::sum_spec;

TEST(Leaving, ARemovedModelFinishesWhatItTookAndTakesNothingNew) {
  PipelineRig rig;
  rig.serve(sum_spec());
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 200; ++i) outcomes.push_back(rig.ask({1, 64, i}));
  rig.loop.advance(milliseconds(1));
  bool gone = false;
  ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(10), [&] { gone = true; }).is_ok());
  const auto late = rig.ask({1, 16});
  EXPECT_EQ("not_ready", late->status->reason());
  rig.loop.advance(seconds(5));
  EXPECT_TRUE(gone);
  EXPECT_EQ(nullptr, rig.pipe->find("sum"));
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  }
}

TEST(Leaving, WhatIsNotFinishedWithinTheBoundIsAnswered) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.time = [](const FakeBatch&) { return seconds(30); };
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 100; ++i) {
    outcomes.push_back(rig.ask({1, 64, i}));
    rig.loop.advance(milliseconds(1));
  }
  bool gone = false;
  ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [&] { gone = true; }).is_ok());
  rig.loop.advance(milliseconds(900));
  EXPECT_FALSE(gone);
  rig.loop.advance(milliseconds(200));
  EXPECT_TRUE(gone);
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_EQ("unloading", outcome->status->reason());
  }
  EXPECT_EQ(0U, rig.pipe->open_requests());
}

TEST(Leaving, NothingOfARemovedModelIsLeft) {
  PipelineRig rig;
  for (int cycle = 0; cycle < 5; ++cycle) {
    rig.serve(sum_spec());
    const auto outcome = rig.ask({8, 64});
    rig.loop.advance(seconds(1));
    EXPECT_TRUE(outcome->status->is_ok());
    ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [] {}).is_ok());
    rig.loop.advance(seconds(1));
    EXPECT_EQ(Bytes(), rig.budget.root().used()) << cycle;
    EXPECT_TRUE(rig.budget.root().child("workers").children().empty());
    EXPECT_TRUE(rig.processes.living().empty());
  }
}

TEST(Leaving, AModelThatComesBackWithLargerBatchesIsNotHeldToItsFormerLimit) {
  PipelineRig rig;
  for (const std::uint32_t max_rows : {8U, 16U}) {
    model::ModelSpec spec = sum_spec();
    spec.batching.max_rows = max_rows;
    rig.serve(std::move(spec));
    EXPECT_EQ(max_rows, rig.model().ladder.max_rows());
    ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [] {}).is_ok());
    rig.loop.advance(seconds(1));
  }
}

TEST(Leaving, AModelMayLeaveAtAnyMomentOfItsStart) {
  for (int ms = 0; ms < 400; ms += 7) {
    PipelineRig rig;
    ASSERT_TRUE(rig.pipe->add_model(sum_spec()).is_ok());
    rig.loop.advance(milliseconds(ms));
    bool gone = false;
    ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [&] { gone = true; }).is_ok());
    rig.loop.advance(seconds(4));
    EXPECT_TRUE(gone) << ms;
    EXPECT_EQ(Bytes(), rig.budget.root().used());
    rig.serve(sum_spec());
    EXPECT_TRUE(rig.model().is_ready());
  }
}

TEST(Leaving, AModelThatCannotBeLoadedCanBeRemoved) {
  PipelineRig rig;
  rig.processes.model.load_failure = wire::Failed{"bad_model_file", "not a zip archive"};
  ASSERT_TRUE(rig.pipe->add_model(sum_spec()).is_ok());
  rig.loop.advance(seconds(100));
  bool gone = false;
  ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [&] { gone = true; }).is_ok());
  rig.loop.advance(seconds(1));
  EXPECT_TRUE(gone);
  const std::uint64_t starts = rig.processes.starts();
  rig.loop.advance(seconds(100));
  EXPECT_EQ(starts, rig.processes.starts()) << "nobody tries to start it again";
}

TEST(Leaving, OthersServeOnMeanwhile) {
  PipelineRig rig;
  model::ModelSpec other = sum_spec();
  other.name = "other";
  rig.serve(std::move(other));
  rig.serve(sum_spec());
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (std::uint32_t i = 0; i < 100; ++i) {
    outcomes.push_back(rig.ask({1, 16, i, seconds(60), "other"}));
    rig.loop.advance(milliseconds(2));
    if (i != 50) continue;
    ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [] {}).is_ok());
  }
  rig.loop.advance(seconds(2));
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->status->is_ok());
  EXPECT_EQ("not_found", std::string(code_name(rig.pipe->remove_model("sum", seconds(1), [] {}).code())));
}

}  // namespace
}  // namespace tonnage::pipeline
