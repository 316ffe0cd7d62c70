// SPDX-License-Identifier: Apache-2.0
// What the ladder, fallbacks and enforce = "observe" do to requests, on a manual clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
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

using Outcomes = std::vector<std::shared_ptr<Outcome>>;

Outcomes ask(PipelineRig& rig, std::uint32_t requests, const Ask& question) {
  Outcomes outcomes;
  for (std::uint32_t i = 0; i < requests; ++i) outcomes.push_back(rig.ask(question));
  return outcomes;
}

// Runs that end after a fault until a batch is good again.
struct Runs {
  std::uint32_t after_fault = 0;
  bool is_waiting = false;
};

TEST(Degrade, AfterOneOutOfMemoryTheNextRunIsAnswered) {
  for (const FakeFault fault : {FakeFault::kPressure, FakeFault::kMemoryKill}) {
    PipelineRig rig;
    rig.serve(sum_spec());
    Runs runs;
    bool inject = true;
    rig.processes.model.fault = [&](const FakeBatch&) {
      if (std::exchange(inject, false)) {
        runs.is_waiting = true;
        return fault;
      }
      if (std::exchange(runs.is_waiting, false)) ++runs.after_fault;
      return FakeFault::kNone;
    };
    const Outcomes outcomes = ask(rig, 64, {});
    rig.loop.advance(seconds(10));
    for (const auto& outcome : outcomes)
      EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
    EXPECT_EQ(1U, runs.after_fault);
    EXPECT_EQ(0U, rig.model().ladder.step()) << "one event moves nothing";
  }
}

TEST(Degrade, AKillForMemoryTeachesTheCostModel) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const cost::Shape shape{1, 32};
  const Bytes before = rig.model().cost->grant(shape);
  bool inject = true;
  rig.processes.model.fault = [&](const FakeBatch&) {
    return std::exchange(inject, false) ? FakeFault::kMemoryKill : FakeFault::kNone;
  };
  const auto outcome = rig.ask({1, 32});
  rig.loop.advance(seconds(5));
  EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  EXPECT_EQ(1U, rig.model().stats.over_grants);
  EXPECT_EQ(0U, rig.model().stats.pressures);
  EXPECT_GT(rig.model().cost->grant(shape), before);
}

TEST(Degrade, CachesAreReleasedBeforeTheCeilingFalls) {
  PipelineRig rig;
  rig.serve(sum_spec());
  const auto trims = [&rig] {
    return std::ranges::count(rig.processes.only().received(), std::string("trim"));
  };
  rig.processes.model.peak = [](const FakeBatch& batch) {
    return batch.run.rows > 16 ? batch.run.grant + mib(1) : kib(64);
  };
  const Outcomes outcomes = ask(rig, 64, {});
  for (int i = 0; i < 1000 && rig.model().ladder.step() == 0; ++i) {
    EXPECT_EQ(0, trims());
    rig.loop.advance(milliseconds(1));
  }
  EXPECT_EQ(Rung::kCachesReleased, rig.model().ladder.rung());
  EXPECT_EQ(64U, rig.model().ladder.max_rows());
  EXPECT_EQ(1, trims());
  rig.loop.advance(seconds(10));
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
}

TEST(Degrade, ABrokenDeviceIsNotOutOfMemory) {
  PipelineRig rig;
  rig.serve(sum_spec());
  int faults = 3;
  rig.processes.model.fault = [&](const FakeBatch&) {
    return faults-- > 0 ? FakeFault::kSticky : FakeFault::kNone;
  };
  const Outcomes outcomes = ask(rig, 8, {});
  const std::uint64_t starts = rig.processes.starts();
  rig.loop.advance(seconds(60));
  EXPECT_GT(rig.processes.starts(), starts) << "the worker is replaced";
  EXPECT_EQ(0U, rig.model().ladder.step());
  EXPECT_EQ(0U, rig.model().stats.over_grants + rig.model().stats.pressures);
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->is_answered());
}

TEST(Degrade, AKeptCeilingIsWhereTheNextStartBegins) {
  PipelineRig first;
  first.serve(sum_spec());
  first.processes.model.peak = [](const FakeBatch& batch) {
    return batch.run.rows > 4 ? batch.run.grant + mib(1) : kib(64);
  };
  ask(first, 64, {});
  for (int i = 0; i < 2000 && first.model().ladder.max_rows() > 8; ++i) first.loop.advance(milliseconds(1));
  const std::uint32_t ceiling = first.model().ladder.max_rows();
  ASSERT_LE(ceiling, 8U);
  first.pipe->stop();

  PipelineRig second;
  second.profiles.kept = first.profiles.kept;
  second.serve(sum_spec());
  EXPECT_EQ(ceiling, second.model().ladder.max_rows());
}

TEST(Degrade, ARequestWhoseRowsStayTogetherIsPoisonAsAWhole) {
  PipelineRig rig;
  model::ModelSpec spec = sum_spec();
  spec.rows = model::RowsRule::kTogether;
  spec.max_rows_per_request = 8;
  rig.serve(std::move(spec));
  rig.processes.model.fault = [](const FakeBatch& batch) {
    return batch.run.rows == 4 ? FakeFault::kDie : FakeFault::kNone;
  };
  const auto guilty = rig.ask({4, 16, 5});
  rig.loop.advance(seconds(10));
  EXPECT_EQ("poison_row", guilty->status->reason());
  EXPECT_EQ("poison_row", rig.ask({4, 16, 5})->status->reason());
  const auto other = rig.ask({3, 16, 5});
  rig.loop.advance(seconds(10));
  EXPECT_TRUE(other->status->is_ok()) << "the same rows in another request: " << other->status->to_string();
}

// A large model whose batches end without memory, and a small one that answers for it. Rows of the large
// one are told from those of the small one by their worker's process.
class FallbackPipeline : public testing::Test {
 protected:
  void serve(const std::string& fallback_of_small = {}) {
    rig_.serve(named("small", fallback_of_small));
    rig_.serve(named("sum", "small"));
    rig_.processes.model.fault = [this](const FakeBatch& batch) {
      return large_is_bad_ && batch.run.length == kLarge ? FakeFault::kPressure : FakeFault::kNone;
    };
  }
  // Lengths that only the large model pads to.
  static constexpr std::uint32_t kLarge = 64;
  static model::ModelSpec named(const std::string& name, const std::string& fallback) {
    model::ModelSpec spec = sum_spec();
    spec.name = name;
    spec.fallback = fallback;
    spec.batching.pad_multiple = name == "sum" ? kLarge : 32;
    spec.batching.max_rows = 4;
    return spec;
  }
  void rest() {
    large_is_bad_ = true;
    for (int i = 0; i < 100 && !rig_.model().ladder.is_resting(); ++i) {
      ask(rig_, 8, {});
      rig_.loop.advance(milliseconds(200));
    }
    ASSERT_TRUE(rig_.model().ladder.is_resting());
  }

  PipelineRig rig_;
  bool large_is_bad_ = false;
};

TEST_F(FallbackPipeline, RunsTheRequestsOfARestingModelAndSaysSo) {
  serve();
  rest();
  const auto outcome = rig_.ask({3, 16, 7});
  rig_.loop.advance(seconds(1));
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_EQ(std::vector<float>(3, 22.0F), outcome->values) << outcome->status->to_string();
  EXPECT_EQ("small", outcome->fallback_model);
  EXPECT_TRUE(rig_.pipe->is_ready(rig_.model())) << "it answers";
  EXPECT_EQ(Bytes(), rig_.envelopes());
}

TEST_F(FallbackPipeline, WhatWaitedWhenTheModelWasLaidToRestGoesThereToo) {
  serve();
  large_is_bad_ = true;
  const Outcomes outcomes = ask(rig_, 200, {2, 16, 7});
  rig_.loop.advance(seconds(30));
  ASSERT_TRUE(rig_.model().ladder.is_resting());
  std::size_t answered = 0;
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome->is_answered());
    if (!outcome->status->is_ok()) continue;
    EXPECT_EQ("small", outcome->fallback_model);
    EXPECT_EQ(std::vector<float>(2, 22.0F), outcome->values);
    ++answered;
  }
  EXPECT_GT(answered, 180U);
  EXPECT_EQ(0U, rig_.pipe->open_requests());
}

TEST_F(FallbackPipeline, TheModelAnswersAgainWhenItsProbesHold) {
  serve();
  rest();
  large_is_bad_ = false;
  std::shared_ptr<Outcome> last;
  for (std::uint32_t i = 0; i < 500; ++i) {
    last = rig_.ask({1, 16});
    rig_.loop.advance(milliseconds(20));
  }
  EXPECT_TRUE(last->status->is_ok());
  EXPECT_EQ("", last->fallback_model);
  EXPECT_EQ(0U, rig_.model().ladder.step());
}

TEST_F(FallbackPipeline, NobodyLeftIs503WithRetryAfter) {
  serve();
  rest();
  rig_.processes.model.fault = [](const FakeBatch&) { return FakeFault::kPressure; };
  for (int i = 0; i < 100 && !rig_.model("small").ladder.is_resting(); ++i) {
    ask(rig_, 8, {1, 16, 1, seconds(60), "small"});
    rig_.loop.advance(milliseconds(200));
  }
  ASSERT_TRUE(rig_.model("small").ladder.is_resting());
  const auto outcome = rig_.ask({});
  EXPECT_EQ("degraded", outcome->status->reason());
  EXPECT_EQ(503, http_status(outcome->status->code()));
  EXPECT_TRUE(outcome->status->retry_after_seconds().has_value());
  EXPECT_FALSE(rig_.pipe->is_ready(rig_.model()));
}

TEST_F(FallbackPipeline, AClientThatLeavesIsForgottenThere) {
  serve();
  rest();
  rig_.processes.model.time = [](const FakeBatch&) { return milliseconds(500); };
  ask(rig_, 8, {});
  rig_.loop.advance(milliseconds(1));
  auto outcome = std::make_shared<Outcome>();
  const request::RequestId id = rig_.submit(outcome, {10, 16});
  const std::size_t waiting = rig_.model("small").waiting_rows();
  rig_.pipe->cancel(id);
  EXPECT_EQ("cancelled", outcome->status->reason());
  EXPECT_EQ(waiting - 10, rig_.model("small").waiting_rows());
}

TEST_F(FallbackPipeline, AnotherKindOfModelIsRefusedByName) {
  rig_.serve(named("small", ""));
  model::ModelSpec spec = named("sum", "small");
  spec.outputs[0].name = "other";
  const Status added = rig_.pipe->add_model(std::move(spec));
  EXPECT_EQ("bad_config", added.reason());
  EXPECT_NE(std::string::npos, added.detail().find("cannot fall back to 'small'"));
}

TEST_F(FallbackPipeline, AFallbackThatComesLaterAndDoesNotFitIsNotUsed) {
  rig_.serve(named("sum", "small"));
  EXPECT_TRUE(rig_.model().fallback_trouble.is_ok()) << "it may still come";
  model::ModelSpec spec = named("small", "");
  spec.max_length = 64;
  rig_.serve(std::move(spec));
  EXPECT_EQ("bad_config", rig_.model().fallback_trouble.reason());
}

TEST_F(FallbackPipeline, AModelThatNobodyFallsBackToChangesNothingForTheOthers) {
  const std::string vocabulary = testing::TempDir() + "degrade-vocabulary.txt";
  const std::string other = testing::TempDir() + "degrade-other.txt";
  std::ofstream(vocabulary) << "[PAD]\n[UNK]\n";
  std::ofstream(other) << "[PAD]\n[UNK]\n";
  model::ModelSpec small = named("small", "");
  model::ModelSpec large = named("sum", "small");
  small.tokenizer = model::TokenizerSpec{"wordpiece", vocabulary, true};
  large.tokenizer = model::TokenizerSpec{"wordpiece", other, true};
  rig_.serve(std::move(small));
  rig_.serve(std::move(large));
  std::ofstream(other) << "[PAD]\n[UNK]\n[CLS]\n";  // what serves was read before
  rig_.serve(named("third", ""));
  EXPECT_TRUE(rig_.model().fallback_trouble.is_ok()) << rig_.model().fallback_trouble.detail();
  std::filesystem::remove(vocabulary);
  std::filesystem::remove(other);
}

// A model whose rows of 256 and more need more than there can be, by what was learned; `truth_factor`
// says how much of that they really need.
class Observing : public testing::Test {
 protected:
  void serve() {
    rig_.processes.model.peak = [this](const FakeBatch& batch) {
      return Bytes(std::uint64_t{batch.run.rows} * batch.run.length * (lies_ ? 1024 : 128 * 1024));
    };
    model::ModelSpec spec = sum_spec();
    spec.batching.max_rows = 2;
    rig_.serve(std::move(spec));
  }
  PipelineRig rig_{mib(90)};
  bool lies_ = false;  // rows need less than was learned
};

TEST_F(Observing, OnRefusesAndObserveRunsInsideTheBudget) {
  serve();
  ASSERT_EQ("never_fits", rig_.ask({1, 512})->status->reason());
  ASSERT_TRUE(rig_.pipe->set_enforce("sum", model::Enforce::kObserve).is_ok());
  lies_ = true;
  Bytes most;
  const auto outcome = rig_.ask({1, 512, 3});
  for (int i = 0; i < 400; ++i) {
    rig_.loop.advance(milliseconds(5));
    most = std::max(most, rig_.budget.root().used());
  }
  ASSERT_TRUE(outcome->is_answered());
  EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  EXPECT_LE(most, rig_.budget.root().limit());
  EXPECT_EQ(1U, rig_.model().observed.refusals);
  const Safety safety = safe_to_enforce(rig_.model().enforce, rig_.model().observed);
  EXPECT_FALSE(safety.is_safe);
  EXPECT_EQ("1 of 1 requests that would have been refused were answered", safety.why);

  ASSERT_TRUE(rig_.pipe->set_enforce("sum", model::Enforce::kOn).is_ok());
  EXPECT_EQ(0U, rig_.model().observed.refusals) << "counted anew";
  EXPECT_EQ("unknown_model", rig_.pipe->set_enforce("other", model::Enforce::kOn).reason());
}

TEST_F(Observing, APredictionThatWasRightIsSafeToEnforceAndMovesNoLadder) {
  serve();
  ASSERT_TRUE(rig_.pipe->set_enforce("sum", model::Enforce::kObserve).is_ok());
  Outcomes beyond;
  Outcomes inside;
  for (int i = 0; i < 120; ++i) {
    if (i % 20 == 0) beyond.push_back(rig_.ask({1, 512}));
    inside.push_back(rig_.ask({1, 32}));
    rig_.loop.advance(milliseconds(50));
  }
  rig_.loop.advance(seconds(2));
  for (const auto& outcome : beyond) {
    ASSERT_TRUE(outcome->is_answered());
    EXPECT_EQ(Code::kTooLarge, outcome->status->code()) << outcome->status->to_string();
  }
  for (const auto& outcome : inside) EXPECT_TRUE(outcome->status->is_ok()) << outcome->status->to_string();
  EXPECT_EQ(0U, rig_.model().ladder.step());
  EXPECT_EQ(beyond.size(), rig_.model().stats.over_grants) << "each was run once";
  const Safety safety = safe_to_enforce(rig_.model().enforce, rig_.model().observed);
  EXPECT_TRUE(safety.is_safe) << safety.why;
}

TEST_F(Observing, FewBatchesSayNothing) {
  EXPECT_EQ("only 12 batches were seen; 100 are needed",
            safe_to_enforce(model::Enforce::kObserve, {.refusals = 3, .answered = 0, .batches = 12}).why);
  EXPECT_TRUE(safe_to_enforce(model::Enforce::kOn, {}).is_safe);
}

TEST_F(Observing, ALateAnswerThatWasPredictedIsCountedToo) {
  serve();
  rig_.processes.model.time = [](const FakeBatch&) { return milliseconds(40); };
  ASSERT_TRUE(rig_.pipe->set_enforce("sum", model::Enforce::kObserve).is_ok());
  ask(rig_, 100, {1, 32});
  rig_.loop.advance(seconds(3));
  const Outcomes outcomes = ask(rig_, 200, {1, 32, 1, milliseconds(300)});
  EXPECT_GT(rig_.model().observed.refusals, 0U);
  rig_.loop.advance(seconds(3));
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome->is_answered());
}

}  // namespace
}  // namespace tonnage::pipeline
