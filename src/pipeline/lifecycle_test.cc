// SPDX-License-Identifier: Apache-2.0
// What is refused before a worker is started, and what is said when one cannot start.
#include <gtest/gtest.h>

#include <algorithm>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::PipelineRig;
using testkit::sum_spec;

TEST(Lifecycle, ModelsWhoseSlotsCannotBeSizedAreRefusedByName) {
  PipelineRig rig;
  model::ModelSpec no_inputs = sum_spec();
  no_inputs.inputs.clear();
  model::ModelSpec no_outputs = sum_spec();
  no_outputs.outputs.clear();
  model::ModelSpec strings = sum_spec();
  strings.inputs[0].type = tensor::DataType::kBytes;
  for (const auto& [spec, named] :
       {std::pair{no_inputs, "[[input]]"}, {no_outputs, "[[output]]"}, {strings, "'ids' is BYTES"}}) {
    const Status refused = rig.pipe->add_model(spec);
    EXPECT_EQ("bad_config", refused.reason());
    EXPECT_NE(std::string::npos, refused.detail().find(named)) << refused.detail();
  }
  EXPECT_TRUE(rig.pipe->models().empty());
  EXPECT_EQ(0U, rig.processes.starts());
}

TEST(Lifecycle, AStartThatWaitsForMemoryIsToldAndSaysHowMuchIsMissing) {
  int told = 0;  // these two go after the rig, which tells up to its end
  Status trouble;
  PipelineRig rig(kib(64));
  rig.pipe->on_model_change([&] {
    ++told;
    trouble = rig.model().trouble;
  });
  ASSERT_TRUE(rig.pipe->add_model(sum_spec()).is_ok());
  rig.loop.advance(milliseconds(1));
  EXPECT_GE(told, 1);
  EXPECT_EQ("over_budget", trouble.reason());
  EXPECT_NE(std::string::npos, trouble.detail().find("are missing")) << trouble.detail();
  EXPECT_EQ(0U, rig.processes.starts());

  rig.budget.root().set_limit(mib(400));
  rig.loop.advance(seconds(30));
  EXPECT_TRUE(rig.model().is_ready());
}

TEST(Lifecycle, AStartThatWaitsIsToldEachTimeItIsTried) {
  int told = 0;
  PipelineRig rig(kib(64));
  ASSERT_TRUE(rig.pipe->add_model(sum_spec()).is_ok());
  rig.loop.advance(milliseconds(1));
  rig.pipe->on_model_change([&] { ++told; });
  rig.loop.advance(seconds(5));
  EXPECT_GE(told, 3) << "its state stays the same; whoever can make room hears of it all the same";
}

// The fault: an idle worker held what its warm-up had touched, more than the budget had; nobody asked it to
// give that back, and every request was refused for ever.
TEST(Lifecycle, AModelIsReadyOnceItsWarmUpHasGivenBackWhatTheBudgetHasNot) {
  PipelineRig rig(mib(64));
  // Each batch leaves pages of its own behind, until a trim.
  rig.processes.model.peak = [&rig](const testkit::FakeBatch&) {
    const auto& received = rig.processes.only().received();
    const auto last_trim = std::ranges::find(received.rbegin(), received.rend(), "trim");
    rig.processes.model.overhead =
        mib(4) * static_cast<std::uint64_t>(std::count(received.rbegin(), last_trim, "run"));
    return kib(64);
  };
  rig.serve(sum_spec());
  ASSERT_TRUE(rig.model().is_ready()) << rig.model().trouble.to_string();
  EXPECT_EQ(Bytes(), rig.budget.root().overdraft());
  const auto outcome = rig.ask({1, 16});
  rig.loop.advance(seconds(2));
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
}

TEST(Lifecycle, WhoeverIsRefusedMemoryMakesIdleWorkersGiveBackTheirs) {
  PipelineRig rig;
  rig.processes.model.overhead = mib(40);
  rig.serve(sum_spec());
  memory::Account& other = rig.budget.root().child("other");
  const memory::Charge all = other.charge(rig.budget.root().available()).value();
  rig.loop.advance(seconds(2));
  EXPECT_EQ(Bytes(), rig.budget.root().available()) << "nobody asked for more";
  EXPECT_FALSE(other.charge(kib(64)).is_ok());
  rig.loop.advance(milliseconds(5));
  EXPECT_GT(rig.budget.root().available(), mib(30));
}

}  // namespace
}  // namespace tonnage::pipeline
