// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "testkit/worker_fixture.h"

namespace tonnage::supervisor {
namespace {

using WorkerExit = testkit::WorkerTest;
using testkit::FakeBatch;
using testkit::FakeFault;

TEST_F(WorkerExit, AnswersTheBatchAndStartsAgainAfterHalfASecond) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  process().die({ExitReason::Kind::kSignal, SIGKILL});
  EXPECT_EQ(RunFailure::kDied, failure());
  EXPECT_EQ(1, answers_);
  EXPECT_EQ(1U, worker_->deaths());
  EXPECT_EQ("worker_lost", worker_->last_error().reason());
  EXPECT_EQ(Bytes(), budget_.root().used()) << "all of it was the process's";
  loop_.advance(milliseconds(499));
  EXPECT_EQ(1U, factory_.starts());
  loop_.advance(milliseconds(101));
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerExit, CallsAKillForMemoryAnOverGrant) {
  make_ready();
  factory_.model.fault = [](const FakeBatch&) { return FakeFault::kMemoryKill; };
  ASSERT_TRUE(run().is_ok());
  loop_.advance(milliseconds(5));
  EXPECT_EQ(RunFailure::kOverGrant, failure());
}

TEST_F(WorkerExit, KillsABatchThatRunsLongerThanItsWatchdogAndDoesNotRetryIt) {
  make_ready();
  factory_.model.fault = [](const FakeBatch&) { return FakeFault::kSilent; };
  ASSERT_TRUE(run(mib(1), seconds(5)).is_ok());
  loop_.advance(milliseconds(4999));
  EXPECT_EQ(0, answers_);
  loop_.advance(milliseconds(2));
  EXPECT_EQ(RunFailure::kWatchdog, failure());
  EXPECT_EQ(1, answers_);
  loop_.advance(seconds(2));
  EXPECT_EQ(1U, factory_.runs());
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerExit, MeasuresEachBatchByItsOwnWatchdog) {
  make_ready();
  ASSERT_TRUE(run(mib(1), seconds(10)).is_ok());
  loop_.advance(milliseconds(5));
  factory_.model.fault = [](const FakeBatch&) { return FakeFault::kSilent; };
  ASSERT_TRUE(run(mib(1), seconds(1)).is_ok());  // earlier than the timer of the first
  loop_.advance(seconds(1) + milliseconds(1));
  EXPECT_EQ(RunFailure::kWatchdog, failure());
}

TEST_F(WorkerExit, OpensTheBreakerAtFiveDeathsAndProbesAfterAMinute) {
  factory_.model.dies_loading = true;
  worker_->start();
  loop_.advance(seconds(20));
  EXPECT_EQ(WorkerState::kBroken, worker_->state());
  EXPECT_EQ(5U, worker_->deaths());
  loop_.advance(seconds(30));
  EXPECT_EQ(5U, factory_.starts());
  factory_.model.dies_loading = false;
  loop_.advance(seconds(30));
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerExit, DoesNotCountForgivenDeaths) {
  make_ready();
  on_answer_ = [this] { worker_->forgive_last_death(); };
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(run().is_ok());
    process().die({ExitReason::Kind::kSignal, SIGSEGV});
    loop_.advance(milliseconds(600));
    ASSERT_TRUE(worker_->is_idle()) << i;
  }
}

TEST_F(WorkerExit, IsNotIdleBetweenKillAndExit) {
  make_ready();
  worker_->kill("its memory is above the hard line");
  EXPECT_EQ(WorkerState::kWaitingToStart, worker_->state());
  loop_.advance(milliseconds(1));
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("hard line"));
  loop_.advance(milliseconds(600));
  EXPECT_TRUE(worker_->is_idle());
}

// What a worker may say at the wrong time. Each costs exactly that process.
struct Lie {
  const char* name;
  void (*tell)(testkit::FakeProcess&);
};

class WorkerLies : public testkit::WorkerTest, public testing::WithParamInterface<Lie> {};

TEST_P(WorkerLies, CostThatProcessAndNothingElse) {
  make_ready();
  loop_.advance(milliseconds(1));  // it was asked for its first stats
  factory_.model.time = [](const FakeBatch&) { return seconds(1); };
  ASSERT_TRUE(run().is_ok());
  GetParam().tell(process());
  EXPECT_FALSE(worker_->is_idle());
  EXPECT_EQ(0, answers_);
  loop_.advance(milliseconds(1));
  EXPECT_EQ(1, answers_);
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("broke the protocol"));
  loop_.advance(milliseconds(600));
  EXPECT_TRUE(worker_->is_idle());
}

wire::Message with_ticket(std::uint64_t ticket, wire::Body body) { return {ticket, std::move(body)}; }

wire::Done outside_the_region() {
  wire::Done done;
  done.outputs.push_back({tensor::DataType::kFp32, {}, 1ULL << 62U, 64});
  return done;
}

INSTANTIATE_TEST_SUITE_P(
    All, WorkerLies,
    testing::Values(
        Lie{"StaleTicket", [](auto& p) { p.say(with_ticket(p.ticket() - 1, wire::Done{})); }},
        Lie{"FutureTicket", [](auto& p) { p.say(with_ticket(p.ticket() + 1, wire::Done{})); }},
        Lie{"ErrorForAnotherTicket", [](auto& p) { p.say(with_ticket(0, wire::Error{})); }},
        Lie{"OutputsOutsideTheRegion", [](auto& p) { p.say(with_ticket(p.ticket(), outside_the_region())); }},
        Lie{"NeedOfWhatItHas", [](auto& p) { p.say(with_ticket(p.ticket(), wire::Need{Bytes(1)})); }},
        Lie{"NeedTwice",
            [](auto& p) {
              p.say(with_ticket(p.ticket(), wire::Need{mib(1)}));
              p.say(with_ticket(p.ticket(), wire::Need{mib(2)}));
            }},
        Lie{"LoadedAgain", [](auto& p) { p.say(with_ticket(0, wire::Loaded{})); }},
        Lie{"FailedAfterLoaded",
            [](auto& p) {
              p.say(with_ticket(0, wire::Failed{"x", "y"}));
            }},
        Lie{"TrimmedUnasked", [](auto& p) { p.say(with_ticket(0, wire::Trimmed{})); }},
        Lie{"StatsUnasked", [](auto& p) { p.say(with_ticket(0, wire::Stats{})); }},
        Lie{"AFrontsMessage", [](auto& p) { p.say(with_ticket(0, wire::Stop{})); }},
        Lie{"NoMessage", [](auto& p) { p.say_nonsense(); }}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST_F(WorkerExit, AnswersOutputsOutsideTheRegionAsBadOutput) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  process().say(with_ticket(process().ticket(), outside_the_region()));
  loop_.advance(milliseconds(1));
  EXPECT_EQ(RunFailure::kBadOutput, failure());
}

TEST_F(WorkerExit, DoesNotBelieveASecondAnswer) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  const std::uint64_t ticket = process().ticket();
  process().say({ticket, wire::Done{}});
  EXPECT_EQ(1, answers_);
  process().say({ticket, wire::Done{}});
  EXPECT_EQ(1, answers_);
  EXPECT_FALSE(worker_->is_idle());
}

TEST_F(WorkerExit, EndsAWorkerThatTakesNoMessages) {
  make_ready();
  process().refuse_messages();
  EXPECT_TRUE(run().is_ok());
  EXPECT_EQ(0, answers_) << "never inside run()";
  loop_.advance(milliseconds(1));
  EXPECT_EQ(RunFailure::kDied, failure());
}

TEST_F(WorkerExit, EndsAWorkerThatNeverAnswersATrim) {
  make_ready();
  factory_.model.time = [](const FakeBatch&) { return milliseconds(1); };
  worker_->trim();
  ASSERT_TRUE(run().is_ok());  // the fake forgets its trim for the batch
  loop_.advance(seconds(10));
  EXPECT_EQ(0U, worker_->deaths());
  loop_.advance(seconds(2));
  EXPECT_EQ(1U, worker_->deaths());
}

TEST_F(WorkerExit, StopsByAskingFirst) {
  make_ready();
  worker_->stop(seconds(10));
  EXPECT_EQ(WorkerState::kStopped, worker_->state());
  EXPECT_TRUE(worker_->has_process());
  EXPECT_EQ("stop", process().received().back());
  loop_.advance(milliseconds(1));
  EXPECT_FALSE(worker_->has_process());
  EXPECT_EQ(Bytes(), budget_.root().used());
  EXPECT_EQ(0U, worker_->deaths());
  loop_.advance(seconds(100));
  EXPECT_EQ(1U, factory_.starts());
}

TEST_F(WorkerExit, LetsABatchFinishWithinTheGrace) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  worker_->stop(seconds(1));
  EXPECT_EQ(WorkerState::kBusy, worker_->state());
  loop_.advance(milliseconds(5));
  EXPECT_EQ(1, answers_);
  EXPECT_FALSE(failure_.has_value());
  EXPECT_EQ(WorkerState::kStopped, worker_->state());
}

TEST_F(WorkerExit, AnswersABatchThatOutlastsTheGrace) {
  make_ready();
  factory_.model.fault = [](const FakeBatch&) { return FakeFault::kSilent; };
  ASSERT_TRUE(run().is_ok());
  worker_->stop(seconds(1));
  loop_.advance(seconds(1) + milliseconds(1));
  EXPECT_EQ(RunFailure::kDied, failure());
  EXPECT_EQ(WorkerState::kStopped, worker_->state());
  EXPECT_FALSE(worker_->has_process());
}

TEST_F(WorkerExit, TellsWhenAStoppedProcessIsGone) {
  make_ready();
  worker_->stop(seconds(1));
  const int before = changes_;
  loop_.advance(milliseconds(1));
  EXPECT_EQ(before + 1, changes_);
}

TEST_F(WorkerExit, AnswersFromItsDestructor) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  worker_.reset();
  EXPECT_EQ(RunFailure::kDied, failure());
}

TEST_F(WorkerExit, MayBeDestroyedByWhatItCalls) {
  make_ready();
  on_answer_ = [this] { worker_.reset(); };
  ASSERT_TRUE(run().is_ok());
  loop_.advance(milliseconds(5));
  EXPECT_EQ(1, answers_);
  EXPECT_FALSE(worker_.has_value());
}

}  // namespace
}  // namespace tonnage::supervisor
