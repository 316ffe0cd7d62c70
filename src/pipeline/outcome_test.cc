// SPDX-License-Identifier: Apache-2.0
// Rows whose clients left while they ran.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::Outcome;
using testkit::PipelineRig;
using testkit::sum_spec;

// Two rows run in one batch that fails as the model says; the first one's client leaves meanwhile.
// What the other one is answered.
std::shared_ptr<Outcome> leave_before_failure(PipelineRig& rig) {
  auto left = std::make_shared<Outcome>();
  const request::RequestId id = rig.submit(left, {1, 16, 1});
  auto stays = rig.ask({1, 16, 2});
  rig.loop.advance(milliseconds(1));
  EXPECT_EQ(0U, rig.model().waiting_rows()) << "both run";
  rig.pipe->cancel(id);
  EXPECT_EQ("cancelled", left->status->reason());
  rig.loop.advance(seconds(5));
  return stays;
}

TEST(Outcome, AfterBadOutputRowsWhoseClientsLeftAreNotRunAgain) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const std::uint64_t before = rig.processes.runs();
  rig.processes.model.outputs = [](const FakeBatch& batch) {
    auto layouts = testkit::row_sums(batch);
    // A row too many, as long as two rows run together.
    if (batch.run.rows == 2)
      layouts[0].shape = tensor::Shape::make(std::array<std::int64_t, 2>{3, 1}).value();
    return layouts;
  };
  const auto stays = leave_before_failure(rig);
  ASSERT_TRUE(stays->is_answered());
  EXPECT_TRUE(stays->status->is_ok()) << stays->status->to_string();
  EXPECT_EQ(before + 2, rig.processes.runs()) << "once together, once without the one that left";
  EXPECT_EQ(1U, rig.model().stats.retried_rows);
}

TEST(Outcome, AfterAThrowRowsWhoseClientsLeftAreNotRunAgain) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const std::uint64_t before = rig.processes.runs();
  rig.processes.model.fault = [](const FakeBatch& batch) {
    return batch.run.rows == 2 ? FakeFault::kThrow : FakeFault::kNone;
  };
  const auto stays = leave_before_failure(rig);
  ASSERT_TRUE(stays->is_answered());
  EXPECT_TRUE(stays->status->is_ok()) << "the last one that is left need not be the guilty one";
  EXPECT_EQ(before + 2, rig.processes.runs());
}

}  // namespace
}  // namespace tonnage::pipeline
