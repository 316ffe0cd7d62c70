// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rotation/rotator.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "telemetry/metric_names.h"
#include "testkit/pipeline_rig.h"

namespace tonnage::pipeline {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::Outcome;
using testkit::PipelineRig;
using testkit::sum_spec;

struct Answer {
  std::optional<Status> status;
  RotationReport report;
};

std::shared_ptr<Answer> rotate(PipelineRig& rig, std::string_view model = "sum") {
  auto answer = std::make_shared<Answer>();
  rig.pipe->rotate(model, Completion<RotationReport>([answer](Result<RotationReport> report) {
                     ASSERT_FALSE(answer->status.has_value()) << "answered twice";
                     answer->status = report.status();
                     if (report.is_ok()) answer->report = *report;
                   }));
  return answer;
}

std::uint64_t counted(PipelineRig& rig, std::string reason, std::string result) {
  return rig.metrics
      .counter(telemetry::metric::kRotations,
               {{"model", "sum"}, {"reason", std::move(reason)}, {"result", std::move(result)}})
      .value();
}

std::string worker_name(const PipelineRig& rig) { return rig.model().workers[0].worker->options().name; }

// What is charged, account by account.
std::vector<std::pair<std::string, Bytes>> ledger(const memory::Account& account,
                                                  const std::string& path = "") {
  std::vector<std::pair<std::string, Bytes>> all{{path, account.used()}};
  for (const memory::Account* child : account.children()) {
    for (auto& entry : ledger(*child, path + "/" + child->name())) all.push_back(std::move(entry));
  }
  return all;
}

TEST(Rotator, AStandbyTakesOverAndTheOldWorkerLeavesNothing) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.ask({64, 256});
  rig.loop.advance(seconds(1));
  const auto before = ledger(rig.budget.root());
  const Bytes held = rig.model().workers[0].worker->charged();
  const auto answer = rotate(rig);
  rig.loop.advance(milliseconds(50));
  EXPECT_EQ(2U, rig.processes.living().size()) << "both live while the standby loads";
  EXPECT_TRUE(rig.model().is_ready());
  rig.loop.advance(seconds(1));
  ASSERT_TRUE(answer->status.has_value());
  EXPECT_TRUE(answer->status->is_ok()) << answer->status->to_string();
  EXPECT_EQ(1U, answer->report.workers);
  EXPECT_EQ(held - rig.model().workers[0].worker->charged(), answer->report.given_back);
  EXPECT_EQ(1U, rig.processes.living().size());
  EXPECT_EQ("sum/1/0b", worker_name(rig));
  EXPECT_EQ(1U, counted(rig, "operator", "done"));

  rotate(rig);
  rig.loop.advance(seconds(5));
  EXPECT_EQ("sum/1/0", worker_name(rig));
  rig.ask({64, 256});
  rig.loop.advance(seconds(1));
  EXPECT_EQ(before, ledger(rig.budget.root()));
}

TEST(Rotator, AWorkerIsLookedAtEachSecondAndNoStandbyDescribedBeforeThereIsAReason) {
  PipelineRig rig;
  model::ModelSpec spec = sum_spec();
  spec.rotation.resident_above = mib(200);
  spec.rotation.max_age = seconds(60);
  rig.serve(std::move(spec));
  const std::uint64_t described = rig.launch_commands;
  rig.loop.advance(seconds(50));
  EXPECT_EQ(described, rig.launch_commands);
  rig.loop.advance(seconds(15));
  EXPECT_GT(rig.launch_commands, described);
  EXPECT_EQ(1U, counted(rig, "age", "done"));
}

TEST(Rotator, TheStandbyIsChargedBeforeItStarts) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const Bytes before = rig.budget.root().used();
  const std::uint64_t starts = rig.processes.starts();
  rotate(rig);
  EXPECT_EQ(starts + 1, rig.processes.starts());
  // Weights (10 MiB, factor 1) and the base of the worker there is (20 MiB), and its segments.
  EXPECT_GE(rig.budget.root().used(), before + mib(30));
}

TEST(Rotator, AStandbyOfAKnownModelRunsThreeShapesOnly) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const std::uint64_t runs = rig.processes.runs();
  rotate(rig);
  rig.loop.advance(seconds(1));
  EXPECT_EQ("sum/1/0b", worker_name(rig));
  EXPECT_EQ(runs + 3, rig.processes.runs());
}

TEST(Rotator, ABatchInFlightIsFinishedByTheOldWorkerBeforeTheStandbyTakesOver) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(400); };
  const auto running = rig.ask({1, 16, 5});
  rig.loop.advance(milliseconds(1));
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(5); };
  rotate(rig);
  rig.loop.advance(milliseconds(300));
  EXPECT_EQ("sum/1/0", worker_name(rig)) << "it waits for the batch";
  const auto next = rig.ask({1, 16, 6});
  rig.loop.advance(milliseconds(120));
  EXPECT_EQ("sum/1/0b", worker_name(rig));
  EXPECT_TRUE(running->status->is_ok());
  EXPECT_TRUE(next->status->is_ok()) << next->status->to_string();
  EXPECT_EQ(0U, rig.model().stats.retried_rows);
}

TEST(Rotator, AStandbyThatCannotBeLoadedLeavesEverythingAsItWas) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const auto before = ledger(rig.budget.root());
  rig.processes.model.load_failure = wire::Failed{"bad_model_file", "not a zip archive"};
  const auto answer = rotate(rig);
  rig.loop.advance(seconds(1));
  EXPECT_EQ("load_failed", answer->status->reason());
  EXPECT_EQ("sum/1/0", worker_name(rig));
  EXPECT_TRUE(rig.model().is_ready());
  EXPECT_EQ(before, ledger(rig.budget.root()));
  EXPECT_EQ(1U, counted(rig, "operator", "failed"));
  EXPECT_EQ(1U, rig.processes.living().size()) << "no process of it is left, none is started again";
}

TEST(Rotator, AStandbyThatNeedsMoreThanIsKnownDoesNotTakeOver) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const std::uint64_t starts = rig.processes.starts();
  const auto answer = rotate(rig);
  rig.processes.model.peak = [](const FakeBatch&) { return mib(90); };
  rig.loop.advance(seconds(1));
  EXPECT_EQ("check_failed", answer->status->reason()) << answer->status->to_string();
  EXPECT_EQ("sum/1/0", worker_name(rig));
  EXPECT_EQ(starts + 1, rig.processes.starts());
}

TEST(Rotator, AStandbyThatDiesInItsCheckDoesNotTakeOver) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const auto answer = rotate(rig);
  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kDie; };
  rig.loop.advance(seconds(1));
  EXPECT_EQ("check_failed", answer->status->reason());
  rig.processes.model.fault = [](const FakeBatch&) { return FakeFault::kNone; };
  const auto outcome = rig.ask({1, 16});
  rig.loop.advance(seconds(1));
  EXPECT_TRUE(outcome->status->is_ok());
}

TEST(Rotator, NeverMoreThanTheBudgetIsChargedWhileBothLive) {
  PipelineRig rig(mib(90));
  rig.serve(sum_spec());
  const auto answer = rotate(rig);
  Bytes highest;
  for (int i = 0; i < 300; ++i) {
    rig.loop.advance(milliseconds(1));
    highest = std::max(highest, rig.budget.root().used());
  }
  EXPECT_TRUE(answer->status->is_ok()) << answer->status->to_string();
  EXPECT_LE(highest, mib(90));
}

TEST(Rotator, WhatDoesNotFitIsRefusedAndSaidOnce) {
  PipelineRig rig(mib(60));
  model::ModelSpec spec = sum_spec();
  spec.rotation.max_age = seconds(10);
  rig.serve(std::move(spec));
  rig.loop.advance(seconds(120));
  EXPECT_EQ(1U, counted(rig, "age", "refused"));
  EXPECT_EQ(1U, rig.processes.starts());
  EXPECT_TRUE(rig.model().is_ready());
  const auto answer = rotate(rig);
  rig.loop.advance(seconds(1));
  EXPECT_EQ("over_budget", answer->status->reason()) << "an operator is told each time";
}

TEST(Rotator, DropThenLoadIsNotReadyMeanwhileAndLosesNothing) {
  PipelineRig rig(mib(60));
  model::ModelSpec spec = sum_spec();
  spec.rotation.when_tight = model::WhenTight::kDropThenLoad;
  rig.serve(std::move(spec));
  rig.processes.model.time = [](const FakeBatch&) { return milliseconds(50); };
  std::vector<std::shared_ptr<Outcome>> outcomes;
  outcomes.push_back(rig.ask({1, 16, 1}));
  rig.loop.advance(milliseconds(1));
  const auto answer = rotate(rig);
  for (std::uint32_t i = 0; i < 20; ++i) outcomes.push_back(rig.ask({1, 16, i}));
  rig.loop.advance(milliseconds(100));
  EXPECT_FALSE(rig.model().is_ready());
  EXPECT_EQ(1U, rig.processes.living().size());
  outcomes.push_back(rig.ask({1, 16, 2}));
  rig.loop.advance(seconds(2));
  EXPECT_TRUE(rig.model().is_ready());
  ASSERT_TRUE(answer->status.has_value());
  EXPECT_TRUE(answer->status->is_ok()) << answer->status->to_string();
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  }
}

TEST(Rotator, AWorkerThatDiesWhileItsStandbyLoadsIsReplacedByIt) {
  PipelineRig rig;
  rig.serve(sum_spec());
  rotate(rig);
  rig.processes.living().front()->die({supervisor::ExitReason::Kind::kSignal, 9});
  const auto outcome = rig.ask({1, 16});
  rig.loop.advance(milliseconds(400));
  EXPECT_EQ("sum/1/0b", worker_name(rig));
  EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  EXPECT_EQ(1U, rig.model().deaths()) << "deaths of a worker that was replaced still count";
}

TEST(Rotator, EachOfSeveralWorkersIsReplacedOneAfterTheOther) {
  PipelineRig rig;
  model::ModelSpec spec = sum_spec();
  spec.workers = 3;
  rig.serve(std::move(spec));
  rig.loop.advance(seconds(1));
  const auto answer = rotate(rig);
  EXPECT_EQ(4U, rig.processes.living().size()) << "one standby at a time";
  const auto second = rotate(rig);
  EXPECT_EQ("already_rotating", second->status->reason());
  rig.loop.advance(seconds(30));
  EXPECT_EQ(3U, answer->report.workers);
  EXPECT_EQ(3U, rig.processes.living().size());
}

TEST(Rotator, BetweenTwoRotationsLiesTenTimesTheLoadTime) {
  PipelineRig rig;
  model::ModelSpec spec = sum_spec();
  spec.rotation.max_age = milliseconds(1);
  rig.serve(std::move(spec));  // loads in 100 ms
  rig.loop.advance(seconds(10));
  const std::uint64_t done = counted(rig, "age", "done");
  EXPECT_GE(done, 6U);
  EXPECT_LE(done, 10U);
}

TEST(Rotator, AWorkerThatGrowsAboveItsLineIsReplacedAndWhatItKeptComesBack) {
  PipelineRig rig;
  model::ModelSpec spec = sum_spec();
  spec.rotation.resident_above = mib(100);
  rig.serve(std::move(spec));
  rig.processes.only().set_resident(mib(90));
  rig.loop.advance(seconds(5));
  EXPECT_EQ(1U, counted(rig, "resident", "done"));
  EXPECT_GE(rig.metrics.counter(telemetry::metric::kRotationGivenBack, {{"model", "sum"}}).value(),
            mib(80).count());
}

TEST(Rotator, AModelThatIsRemovedInTheMiddleAnswersTheOperatorAndLeavesNothing) {
  for (const Duration when : {milliseconds(1), milliseconds(101), milliseconds(104), milliseconds(130)}) {
    PipelineRig rig;
    rig.serve(sum_spec());
    rig.processes.model.exit_time = milliseconds(20);
    const auto answer = rotate(rig);
    rig.loop.advance(when);
    bool gone = false;
    ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [&] { gone = true; }).is_ok());
    rig.loop.advance(seconds(3));
    EXPECT_TRUE(gone) << to_millis(when);
    EXPECT_TRUE(answer->status.has_value());
    EXPECT_EQ(0U, rig.processes.living().size());
    EXPECT_EQ(Bytes(), rig.budget.root().used());
  }
}

TEST(Rotator, AModelThatIsRemovedWhileItsOnlyWorkerIsDroppedGoesAndLeavesTheNextRotationFree) {
  for (int ms = 0; ms < 160; ms += 3) {
    PipelineRig rig(mib(60));
    model::ModelSpec spec = sum_spec();
    spec.rotation.when_tight = model::WhenTight::kDropThenLoad;
    rig.serve(std::move(spec));
    rig.processes.model.exit_time = milliseconds(20);
    const auto answer = rotate(rig);
    rig.loop.advance(milliseconds(ms));
    bool gone = false;
    ASSERT_TRUE(rig.pipe->remove_model("sum", seconds(1), [&] { gone = true; }).is_ok());
    rig.loop.advance(seconds(3));
    EXPECT_TRUE(gone) << ms;
    EXPECT_TRUE(answer->status.has_value()) << ms;
    EXPECT_EQ(0U, rig.processes.living().size()) << ms;
  }
}

TEST(Rotator, AnOperatorIsAnsweredThoughOneOfTheWorkersIsBroken) {
  PipelineRig rig;
  model::ModelSpec spec = sum_spec();
  spec.workers = 2;
  rig.serve(std::move(spec));
  rig.loop.advance(seconds(1));
  const supervisor::Worker& broken = *rig.model().workers[1].worker;
  for (int i = 0; i < 300 && broken.state() != supervisor::WorkerState::kBroken; ++i) {
    const auto living = rig.processes.living();  // of which death takes some
    for (auto* process : living) {
      if (process->pid() == broken.pid()) process->die({supervisor::ExitReason::Kind::kSignal, 9});
    }
    rig.loop.advance(milliseconds(100));
  }
  ASSERT_EQ(supervisor::WorkerState::kBroken, broken.state());
  const auto answer = rotate(rig);
  rig.loop.advance(seconds(30));
  EXPECT_TRUE(answer->status.has_value());
}

TEST(Rotator, TheServerMayStopAtAnyTime) {
  for (int ms = 0; ms < 160; ms += 3) {
    PipelineRig rig;
    rig.serve(sum_spec());
    const auto answer = rotate(rig);
    rig.loop.advance(milliseconds(ms));
    rig.pipe.reset();
    EXPECT_TRUE(answer->status.has_value());
    EXPECT_EQ(Bytes(), rig.budget.root().used());
  }
}

}  // namespace
}  // namespace tonnage::pipeline
