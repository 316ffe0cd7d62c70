// SPDX-License-Identifier: Apache-2.0
// What runs next, where: lanes, retries, several workers and one ledger, on a manual clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::Ask;
using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::Outcome;
using testkit::PipelineRig;
using testkit::sum_spec;

struct Ran {
  std::uint32_t rows = 0;
  std::uint32_t length = 0;
  bool operator==(const Ran&) const = default;
};

// Every batch from now on, in the order of their ends.
std::shared_ptr<std::vector<Ran>> watch_batches(PipelineRig& rig) {
  auto ran = std::make_shared<std::vector<Ran>>();
  rig.processes.model.outputs = [ran](const FakeBatch& batch) {
    ran->push_back({batch.run.rows, batch.run.length});
    return testkit::row_sums(batch);
  };
  return ran;
}

std::size_t answered(const std::vector<std::shared_ptr<Outcome>>& outcomes) {
  return static_cast<std::size_t>(std::ranges::count_if(
      outcomes, [](const auto& outcome) { return outcome->is_answered() && outcome->status->is_ok(); }));
}

// Leaves exactly this much of the budget to be had.
memory::Charge leave_free(PipelineRig& rig, Bytes free) {
  return rig.budget.root().child("hog").charge(rig.budget.root().available() - free).value();
}

model::ModelSpec one_at_a_time(std::string name = "sum") {
  model::ModelSpec spec = sum_spec();
  spec.name = std::move(name);
  spec.batching.max_rows = 1;
  spec.threads = 1;
  return spec;
}

// A row of `length` needs this much, and the process keeps nothing of it.
void needs_bytes_per_token(PipelineRig& rig, Bytes bytes) {
  rig.processes.model.frees_at_once = true;
  rig.processes.model.peak = [bytes](const FakeBatch& batch) {
    return bytes * (std::uint64_t{batch.run.rows} * batch.run.length);
  };
}

TEST(Drive, RowsThatTheLedgerRefusesAfterAllReturnToTheirPlaceInTheLane) {
  PipelineRig rig;
  needs_bytes_per_token(rig, kib(16));
  rig.serve(sum_spec());
  const auto ran = watch_batches(rig);
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 3; ++i) outcomes.push_back(rig.ask({1, 512, 1 + i}));
  rig.budget.fail_nth_charge(1);
  rig.loop.run_posted();
  EXPECT_EQ(3U, rig.model().waiting_rows());
  EXPECT_TRUE(rig.model().retries.empty());
  outcomes.push_back(rig.ask({1, 512, 9}));
  rig.loop.advance(seconds(1));
  EXPECT_EQ(4U, answered(outcomes));
  EXPECT_EQ((std::vector<Ran>{{4, 512}}), *ran) << "one batch, with what came meanwhile";
}

// Two rows of one request, in different lanes.
std::shared_ptr<Outcome> ask_short_and_long(PipelineRig& rig, std::uint32_t first, std::uint32_t second,
                                            Duration deadline) {
  auto outcome = std::make_shared<Outcome>();
  request::Request request;
  request.model = rig.model().spec;
  request.rows = 2;
  request.lengths = {first, second};
  request::RowsTensor ids;
  ids.offsets = {0, std::uint64_t{first} * 8, std::uint64_t{first + second} * 8};
  ids.data = tensor::Buffer(ids.offsets.back());
  std::ranges::fill(as_elements<std::int64_t>(ids.data.mutable_view()), 1);
  request.inputs.emplace_back(std::move(ids));
  request.arrived = rig.loop.now();
  request.deadline = rig.loop.now() + deadline;
  request.completion = Completion<request::Answer>(
      [outcome](Result<request::Answer> answer) { outcome->status = answer.status(); });
  rig.pipe->submit(std::move(request));
  return outcome;
}

TEST(Drive, ADropInOneLaneTakesTheRequestsRowsOutOfPlansOfAnotherLane) {
  PipelineRig rig;
  rig.processes.model.time = [](const FakeBatch& batch) {
    return milliseconds(1) * (std::uint64_t{batch.run.rows} * batch.run.length / 8);
  };
  model::ModelSpec spec = sum_spec();
  spec.batching.long_above = 128;
  rig.serve(std::move(spec));
  const auto ran = watch_batches(rig);
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(980); };  // beyond the prediction
  rig.ask({1, 16});
  rig.loop.advance(milliseconds(1));
  const auto hopeless = ask_short_and_long(rig, 96, 512, seconds(1));
  const auto other = rig.ask({1, 16, 5});
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(2); };
  rig.loop.advance(seconds(2));
  EXPECT_EQ("deadline", hopeless->status->reason());
  ASSERT_TRUE(other->is_answered());
  EXPECT_TRUE(other->status->is_ok()) << other->status->to_string();
  EXPECT_EQ((Ran{1, 32}), ran->back()) << "not padded for a row that is gone";
}

TEST(Drive, AGrantIsJudgedByTheLeaseOfTheWorkerThatRunsIt) {
  PipelineRig rig;
  rig.processes.model.peak = [](const FakeBatch& batch) { return kib(64) * batch.run.length; };
  model::ModelSpec spec = one_at_a_time();
  spec.workers = 2;
  rig.serve(std::move(spec));
  rig.loop.advance(seconds(1));
  // The first worker lost what it held since the warm-up; the second one runs a large row meanwhile.
  rig.processes.living().front()->die({supervisor::ExitReason::Kind::kSignal, 9});
  rig.ask({1, 512});
  rig.loop.advance(seconds(10));
  const auto& workers = rig.model().workers;
  ASSERT_TRUE(workers[0].worker->is_idle() && workers[1].worker->is_idle());
  ASSERT_GT(workers[1].worker->memory().lease, workers[0].worker->memory().lease);
  const memory::Charge hog = leave_free(rig, mib(1));
  const auto outcome = rig.ask({1, 512, 5});
  rig.loop.advance(milliseconds(20));
  ASSERT_TRUE(outcome->is_answered()) << "the second worker needs nothing that it does not hold";
  EXPECT_TRUE(outcome->status->is_ok());
}

TEST(Drive, ARowThatWaitsForMemoryBehindRowsThatFitGetsItsMemory) {
  PipelineRig rig;
  rig.processes.model.peak = [](const FakeBatch& batch) { return kib(64) * batch.run.length; };
  rig.serve(one_at_a_time("idle"));  // keeps what its warm-up touched until it is asked to trim
  rig.processes.model.frees_at_once = true;
  rig.serve(one_at_a_time("busy"));
  const memory::Charge hog = leave_free(rig, mib(16));
  const auto large = rig.ask({1, 512, 1, seconds(60), "busy"});
  std::vector<std::shared_ptr<Outcome>> small;
  for (int i = 0; i < 200 && !large->is_answered(); ++i) {
    for (int j = 0; j < 2; ++j) small.push_back(rig.ask({1, 16, 1, seconds(60), "busy"}));
    rig.loop.advance(milliseconds(10));
  }
  ASSERT_TRUE(large->is_answered());
  EXPECT_TRUE(large->status->is_ok()) << large->status->to_string();
}

TEST(Drive, ARetryThatWaitsForMemoryIsProtectedLikeALane) {
  PipelineRig rig(mib(600), 4);
  bool lies = false;
  rig.processes.model.frees_at_once = true;
  rig.processes.model.peak = [&lies](const FakeBatch& batch) {
    return batch.run.length == 256 && lies ? mib(40) : kib(40) * batch.run.length;
  };
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(20); };
  rig.serve(one_at_a_time("one"));
  model::ModelSpec two = one_at_a_time("two");
  two.workers = 2;
  rig.serve(std::move(two));
  rig.loop.advance(seconds(1));
  const memory::Charge hog = leave_free(rig, mib(70));
  lies = true;
  const auto retried = rig.ask({1, 256, 1, seconds(60), "one"});
  rig.loop.advance(milliseconds(1));
  // Two workers in turn, so that at no time both of their leases are free.
  std::vector<std::shared_ptr<Outcome>> stream;
  for (int i = 0; i < 500 && !retried->is_answered(); ++i) {
    stream.push_back(rig.ask({1, 512, 1, seconds(60), "two"}));
    rig.loop.advance(milliseconds(10));
  }
  ASSERT_TRUE(retried->is_answered()) << answered(stream) << " others went before it";
  EXPECT_TRUE(retried->status->is_ok()) << retried->status->to_string();
  EXPECT_EQ(1U, rig.model("one").stats.over_grants);
}

TEST(Drive, TheLaneThatRanIsChargedNotTheOneOfItsPaddedLength) {
  PipelineRig rig;
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(10); };
  model::ModelSpec spec = one_at_a_time();
  spec.batching.long_above = 100;  // rows of 100 are short and are padded to 128
  rig.serve(std::move(spec));
  std::vector<std::shared_ptr<Outcome>> shorts;
  std::vector<std::shared_ptr<Outcome>> longs;
  for (int i = 0; i < 100; ++i) {
    shorts.push_back(rig.ask({1, 100}));
    longs.push_back(rig.ask({1, 128}));
  }
  rig.loop.advance(seconds(1));
  EXPECT_NEAR(static_cast<double>(answered(shorts)), static_cast<double>(answered(longs)), 10);
}

TEST(Drive, ARefusingModelIsTriedAgainAfterAWhileWithoutAnyTraffic) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kPressure; };
  for (int i = 0; i < 200; ++i) rig.ask({1, 16});
  rig.loop.advance(seconds(10));
  ASSERT_FALSE(rig.model().is_ready());
  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kNone; };
  rig.loop.advance(seconds(31));  // nobody asks a model that is not ready
  EXPECT_TRUE(rig.model().is_ready());
  const auto outcome = rig.ask({1, 16});
  rig.loop.advance(seconds(1));
  EXPECT_TRUE(outcome->status->is_ok());
}

}  // namespace
}  // namespace tonnage::pipeline
