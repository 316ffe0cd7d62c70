// SPDX-License-Identifier: Apache-2.0
// A hundred rotations under load, in a budget that holds the old worker, the standby's charge and a tenth
// more: pipeline, planner, ledger and supervisor are real; the clock and the worker processes are fakes.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "telemetry/metric_names.h"
#include "testkit/pipeline_rig.h"

namespace tonnage {
namespace {

using testkit::FakeBatch;
using testkit::PipelineRig;

constexpr Duration kBatchTime = milliseconds(10);
constexpr std::uint32_t kRows = 8;  // in one batch at most
constexpr std::uint32_t kLength = 64;
constexpr Bytes kBytesPerToken = kib(64);

model::ModelSpec rotating_spec() {
  model::ModelSpec spec = testkit::sum_spec(kLength);
  spec.batching.max_rows = kRows;
  spec.rotation.max_age = milliseconds(1);  // as often as the pause allows
  return spec;
}

void script(testkit::FakeModel& model) {
  model.load_time = milliseconds(20);
  model.time = [](const FakeBatch&) { return kBatchTime; };
  model.peak = [](const FakeBatch& batch) { return kBytesPerToken * (batch.run.rows * batch.run.length); };
}

// What the old worker holds once the largest batch went through it, and what its standby is charged.
Bytes tightest_budget() {
  PipelineRig rig(gib(1));
  script(rig.processes.model);
  model::ModelSpec spec = rotating_spec();
  spec.rotation = {};
  rig.serve(std::move(spec));
  for (std::uint32_t i = 0; i < 200; ++i) rig.ask({1, kLength});
  rig.loop.advance(seconds(5));
  const supervisor::Worker& worker = *rig.model().workers[0].worker;
  supervisor::WorkerOptions standby = worker.options();
  standby.weight_file = worker.memory().weights;
  standby.known_base = worker.memory().base;
  const Bytes charge =
      supervisor::start_charge(standby) + pipeline::check_room(*rig.model().spec, *rig.model().cost);
  return scale(worker.charged() + charge, 1.1);
}

TEST(RotationSimulation, AHundredRotationsAtFourFifthsOfCapacityLoseNothingAndAnswerNothingTwice) {
  PipelineRig rig(tightest_budget());
  rig.processes.keeps_names = false;
  script(rig.processes.model);
  rig.serve(rotating_spec());
  telemetry::Counter& done = rig.metrics.counter(telemetry::metric::kRotations,
                                                 {{"model", "sum"}, {"reason", "age"}, {"result", "done"}});
  const auto others = [&] {
    std::uint64_t count = 0;
    for (const char* result : {"failed", "refused"}) {
      count += rig.metrics
                   .counter(telemetry::metric::kRotations,
                            {{"model", "sum"}, {"reason", "age"}, {"result", result}})
                   .value();
    }
    return count;
  };
  const Duration between = from_seconds(to_seconds(kBatchTime) / kRows / 0.8);
  std::vector<std::shared_ptr<testkit::Outcome>> outcomes;
  Bytes highest;
  while (done.value() < 100 && outcomes.size() < 1'000'000) {
    outcomes.push_back(rig.ask({1, kLength, static_cast<std::int64_t>(outcomes.size())}));
    rig.loop.advance(between);
    highest = std::max(highest, rig.budget.root().used());
  }
  rig.loop.advance(seconds(5));
  EXPECT_GE(done.value(), 100U);
  EXPECT_EQ(0U, others());
  EXPECT_LE(highest, rig.budget.root().limit());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    // A second answer would have been a counted bug, which ends a test.
    ASSERT_TRUE(outcomes[i]->is_answered()) << i;
    ASSERT_TRUE(outcomes[i]->status->is_ok()) << i << ": " << outcomes[i]->status->to_string();
    ASSERT_EQ(static_cast<float>(i + kLength - 1), outcomes[i]->values.at(0));
  }
  EXPECT_EQ(outcomes.size(), rig.model().stats.rows) << "each row was executed once";
  EXPECT_EQ(0U, rig.model().stats.retried_rows);
  EXPECT_EQ(0U, rig.pipe->open_requests());
}

TEST(RotationSimulation, TheLedgerComesBackToTheSameNumbers) {
  PipelineRig rig(tightest_budget());
  script(rig.processes.model);
  rig.serve(rotating_spec());
  std::set<Bytes> at_rest;
  telemetry::Counter& done = rig.metrics.counter(telemetry::metric::kRotations,
                                                 {{"model", "sum"}, {"reason", "age"}, {"result", "done"}});
  for (std::uint64_t rotations = 2; rotations <= 100; rotations += 2) {
    while (done.value() < rotations) rig.loop.advance(milliseconds(1));
    for (std::uint32_t i = 0; i < 3 * kRows; ++i) rig.ask({1, kLength});
    rig.loop.advance(milliseconds(60));
    at_rest.insert(rig.budget.root().used());
  }
  EXPECT_EQ(1U, at_rest.size());
}

}  // namespace
}  // namespace tonnage
