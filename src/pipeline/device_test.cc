// SPDX-License-Identifier: Apache-2.0
// Models on a device: whose ledger their grants come from. The device and its driver are fakes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "testkit/pipeline_rig.h"
#include "wire/messages.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::Outcome;
using testkit::PipelineRig;

model::ModelSpec on_device(const char* device = "cuda:0") {
  model::ModelSpec spec = testkit::sum_spec();
  spec.device = device;
  return spec;
}

// 1,000 MiB, of which 900 may be used; the model takes 300 of context, 100 of weights, 10 per row.
struct DeviceRig : PipelineRig {
  explicit DeviceRig(Bytes host = mib(400)) : PipelineRig(host) {
    processes.model.device = "cuda:0";
    processes.model.weights = mib(100);
    processes.model.overhead = mib(2);
    processes.model.peak = [](const FakeBatch& batch) { return mib(10) * batch.run.rows; };
  }
  memory::Account& ledger() { return (*devices.ledger("cuda:0"))->root(); }
  Bytes on_host() { return budget.root().child("workers").used(); }
  supervisor::WorkerMemory seen() { return model().workers.front().worker->memory(); }
};

TEST(DeviceModel, IsChargedOnItsDeviceAndOnTheHostForWhatIsResidentThere) {
  DeviceRig rig;
  rig.serve(on_device());
  ASSERT_EQ(ModelPhase::kReady, rig.model().phase) << rig.model().trouble.to_string();
  EXPECT_EQ(mib(300), rig.seen().device->base);
  EXPECT_EQ(mib(100), rig.seen().device->weights);
  EXPECT_EQ(mib(20), rig.seen().base);
  EXPECT_EQ(Bytes(), rig.seen().weights);
  EXPECT_LT(rig.on_host(), mib(40));
  EXPECT_GE(rig.ledger().used(), mib(400));
}

TEST(DeviceModel, RunsBatchesThatTheHostCouldNotHoldAndNeverLeavesTheDevicesBudget) {
  DeviceRig rig(mib(120));
  rig.serve(on_device());
  ASSERT_EQ(ModelPhase::kReady, rig.model().phase) << rig.model().trouble.to_string();
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 200; ++i) outcomes.push_back(rig.ask({1, 16}));
  Bytes largest;
  for (int i = 0; i < 2000; ++i) {
    rig.loop.advance(milliseconds(1));
    EXPECT_LE(rig.ledger().used(), rig.ledger().limit());
    largest = std::max(largest, rig.seen().grant);
  }
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  }
  EXPECT_GT(largest, mib(200)) << "more than the whole host's budget";
  EXPECT_LE(largest + wire::kSegmentSlack, mib(500)) << "900 less context and weights";
  EXPECT_LT(rig.on_host(), mib(60));
}

TEST(DeviceModel, ARequestThatTheDeviceCannotHoldIsRefusedThoughTheHostCould) {
  DeviceRig rig(gib(8));
  rig.processes.model.peak = [](const FakeBatch& batch) {
    return mib(2) * batch.run.rows * batch.run.length;
  };
  rig.serve(on_device());
  ASSERT_EQ(ModelPhase::kReady, rig.model().phase) << rig.model().trouble.to_string();
  const auto fits = rig.ask({1, 160});
  const auto outcome = rig.ask({1, 500});
  rig.loop.advance(seconds(5));
  EXPECT_TRUE(fits->status->is_ok()) << fits->status->to_string();
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_EQ("never_fits", outcome->status->reason()) << outcome->status->to_string();
}

TEST(DeviceModel, ABrokenDeviceReplacesTheWorkerAndNeverMovesTheLadder) {
  DeviceRig rig;
  rig.serve(on_device());
  int faults = 1;
  rig.processes.model.fault = [&](const FakeBatch&) {
    return faults-- > 0 ? FakeFault::kSticky : FakeFault::kNone;
  };
  const auto outcome = rig.ask({4, 16});
  rig.loop.advance(milliseconds(100));
  EXPECT_LE(rig.ledger().child("workers").used(), Bytes()) << "its context went with the process";
  rig.loop.advance(seconds(5));
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  EXPECT_EQ(0U, rig.model().ladder.step());
  EXPECT_EQ(0U, rig.model().stats.over_grants);
  EXPECT_EQ(2U, rig.processes.starts());
}

TEST(DeviceModel, IsRefusedByNameWhereItsDeviceIsNotThereAndOthersServe) {
  DeviceRig rig;
  const Status status = rig.pipe->add_model(on_device("cuda:1"));
  EXPECT_EQ(Code::kNotFound, status.code());
  EXPECT_EQ("no_device", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("'sum'")) << status.detail();
  rig.processes.model.device.clear();
  rig.serve(testkit::sum_spec());
  EXPECT_EQ(ModelPhase::kReady, rig.model().phase);
}

TEST(DeviceModel, WaitsUntilOthersLeaveTheRoomThatItLoadsWith) {
  DeviceRig rig;
  rig.device.others = mib(600);
  ASSERT_TRUE(rig.pipe->add_model(on_device()).is_ok());
  rig.loop.advance(seconds(3));
  EXPECT_EQ("over_budget", rig.model().trouble.reason());
  EXPECT_NE(std::string::npos, rig.model().trouble.detail().find("device")) << rig.model().trouble.detail();
  rig.device.others = mib(50);
  rig.devices.look();
  rig.loop.advance(seconds(30));
  EXPECT_EQ(ModelPhase::kReady, rig.model().phase) << rig.model().trouble.to_string();
}

TEST(DeviceModel, AContextIsAssumedWhereTheDriverNamesNoProcesses) {
  DeviceRig rig;
  rig.device.total = mib(2000);
  rig.device.names_processes = false;
  rig.serve(on_device());
  ASSERT_EQ(ModelPhase::kReady, rig.model().phase) << rig.model().trouble.to_string();
  EXPECT_EQ(mib(700), rig.seen().device->base);
  EXPECT_EQ(mib(100), rig.seen().device->weights);
  const auto outcome = rig.ask({8, 16});
  rig.loop.advance(seconds(2));
  EXPECT_TRUE(outcome->status->is_ok());
  EXPECT_GE(rig.seen().device->lease, mib(80)) << "as its allocator told";
}

TEST(DeviceModel, AWorkerThatDoesNotSayThatItIsOnTheDeviceIsNotServed) {
  DeviceRig rig;
  rig.processes.model.device.clear();
  ASSERT_TRUE(rig.pipe->add_model(on_device()).is_ok());
  rig.loop.advance(seconds(1));
  EXPECT_NE(ModelPhase::kReady, rig.model().phase);
  EXPECT_NE(std::string::npos, rig.model().trouble.detail().find("wrong_device"))
      << rig.model().trouble.detail();
}

TEST(DeviceModel, IsRotatedOnItsDevice) {
  DeviceRig rig;
  rig.device.total = mib(2000);
  rig.serve(on_device());
  std::optional<Status> rotated;
  rig.pipe->rotate(
      "sum", Completion<RotationReport>([&](Result<RotationReport> report) { rotated = report.status(); }));
  rig.loop.advance(seconds(10));
  ASSERT_TRUE(rotated.has_value());
  EXPECT_TRUE(rotated->is_ok()) << rotated->to_string();
  EXPECT_EQ(2U, rig.processes.starts());
  EXPECT_EQ(1U, rig.processes.living().size());
  EXPECT_EQ(mib(300), rig.seen().device->base);
}

TEST(DeviceModel, LeavesNothingOnTheDeviceWhenItGoes) {
  DeviceRig rig;
  rig.serve(on_device());
  bool gone = false;
  ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [&] { gone = true; }).is_ok());
  rig.loop.advance(seconds(5));
  EXPECT_TRUE(gone);
  EXPECT_EQ(Bytes(), rig.ledger().child("workers").used());
  EXPECT_TRUE(rig.ledger().child("workers").children().empty());
}

}  // namespace
}  // namespace tonnage::pipeline
