// SPDX-License-Identifier: Apache-2.0
// A seeded simulation of the code that `tonnage serve` runs: lane, planner, ledger, supervisor and
// pipeline are real; the clock and the worker processes are fakes. Batch times are wrong by up to ±30 %
// of what the model learned.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "testkit/pipeline_rig.h"
#include "testkit/traffic.h"

namespace tonnage {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::PipelineRig;

struct Tally {
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  Duration longest_wait{};
};

constexpr double kSecondsPerToken = 50e-6;
constexpr double kSecondsPerBatch = 1e-3;

// The true time of a batch, before the ±30 %.
double true_seconds(const FakeBatch& batch) {
  return kSecondsPerBatch + kSecondsPerToken * batch.run.rows * batch.run.length;
}

// Submits `rows` rows at 0.7 × capacity, one request each, and counts what becomes of them.
Tally simulate(PipelineRig& rig, std::uint64_t rows, std::uint64_t seed) {
  Random noise(seed ^ 0x5eed);
  rig.processes.model.time = [&noise](const FakeBatch& batch) {
    return from_seconds(true_seconds(batch) * (0.7 + 0.6 * noise.unit()));
  };
  // A mean row of this mix has 141 tokens; padding and batch overhead cost about a fifth more.
  const double capacity = 1.0 / (141 * kSecondsPerToken * 1.2);
  testkit::Traffic traffic(seed, testkit::kLongTailedMix, 0.7 * capacity, rig.loop.now());
  Tally tally;
  const model::ModelHandle spec = rig.model().spec;
  for (std::uint64_t i = 0; i < rows; ++i) {
    const testkit::Arrival arrival = traffic.next();
    rig.loop.advance_to(arrival.at);
    request::Request request;
    request.model = spec;
    request.rows = 1;
    request.length = arrival.length;
    request::RowsTensor ids;
    ids.row_bytes = arrival.length * sizeof(std::int64_t);
    ids.data = tensor::Buffer(ids.row_bytes);
    request.inputs.emplace_back(std::move(ids));
    request.arrived = arrival.at;
    request.deadline = arrival.at + seconds(60);
    request.completion =
        Completion<request::Answer>([&tally, &rig, at = arrival.at](Result<request::Answer> answer) {
          const Status status = answer.status();
          tally.longest_wait = std::max(tally.longest_wait, rig.loop.now() - at);
          (status.is_ok()                     ? tally.answered
           : status.code() == Code::kInternal ? tally.failed
                                              : tally.refused) += 1;
        });
    rig.pipe->submit(std::move(request));
  }
  rig.loop.advance(seconds(120));
  return tally;
}

PipelineRig& prepare(PipelineRig& rig) {
  rig.processes.keeps_names = false;
  rig.processes.model.with_data = false;
  rig.processes.model.outputs = testkit::blank_outputs(1);
  rig.processes.model.time = [](const FakeBatch& batch) { return from_seconds(true_seconds(batch)); };
  rig.processes.model.peak = [](const FakeBatch& batch) {
    return Bytes(batch.run.rows * batch.run.length) * 2048;
  };
  rig.serve(testkit::sum_spec(1024));
  return rig;
}

TEST(Simulation, AMillionRowsWithTimesWrongByAThirdStarveNobody) {
  PipelineRig rig;
  prepare(rig);
  const Tally tally = simulate(rig, 1'000'000, 42);
  EXPECT_EQ(1'000'000U, tally.answered + tally.refused + tally.failed);
  EXPECT_EQ(0U, tally.failed);
  EXPECT_EQ(0U, tally.refused);
  // The bound of src/planner/README.md: far below the deadline even for the longest rows.
  EXPECT_LT(to_seconds(tally.longest_wait), 10.0);
  EXPECT_EQ(0U, rig.pipe->open_requests());
  EXPECT_EQ(0U, rig.model().stats.over_grants);
}

TEST(Simulation, RandomDeathsThrowsAndPressureLoseNoRequest) {
  PipelineRig rig;
  prepare(rig);
  Random luck(7);
  rig.processes.model.fault = [&luck](const FakeBatch&) {
    const double draw = luck.unit();
    if (draw < 0.002) return FakeFault::kDie;
    if (draw < 0.004) return FakeFault::kPressure;
    return FakeFault::kNone;
  };
  const Tally tally = simulate(rig, 20'000, 3);
  EXPECT_EQ(20'000U, tally.answered + tally.refused + tally.failed) << "each request is answered once";
  // A row that is alone in two deaths in a row is taken for poison: rare, never lost.
  EXPECT_LT(tally.failed, 20U);
  EXPECT_EQ(0U, rig.pipe->open_requests());
}

TEST(Simulation, TheSameSeedGivesTheSameRun) {
  PipelineRig first;
  PipelineRig second;
  const Tally a = simulate(prepare(first), 5'000, 11);
  const Tally b = simulate(prepare(second), 5'000, 11);
  EXPECT_EQ(a.longest_wait, b.longest_wait);
  EXPECT_EQ(first.model().stats.batches, second.model().stats.batches);
  EXPECT_EQ(first.model().stats.padded_tokens, second.model().stats.padded_tokens);
}

}  // namespace
}  // namespace tonnage
