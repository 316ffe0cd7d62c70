// SPDX-License-Identifier: Apache-2.0
// What is refused before a worker is started, and what is said when one cannot start.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tonnage::pipeline
