// SPDX-License-Identifier: Apache-2.0
#include "testkit/worker_fixture.h"

namespace tonnage::supervisor {
namespace {

using WorkerStart = testkit::WorkerTest;

TEST_F(WorkerStart, SaysHelloThenLoadsAndIsReady) {
  factory_.model.loaded.runtime = "fake 1.0";
  worker_->start();
  EXPECT_EQ(WorkerState::kLoading, worker_->state());
  EXPECT_EQ((std::vector<std::string>{"hello", "load"}), process().received());
  loop_.advance(milliseconds(99));
  EXPECT_EQ(WorkerState::kLoading, worker_->state());
  loop_.advance(milliseconds(1));
  EXPECT_TRUE(worker_->is_idle());
  EXPECT_EQ("fake 1.0", worker_->loaded()->runtime);
  EXPECT_TRUE(worker_->last_error().is_ok());
  EXPECT_EQ(2, changes_);  // loading, ready
}

TEST_F(WorkerStart, ChargesLoadingUntilLoadedAndThenWhatTheKernelSays) {
  make_worker({.weight_file = mib(40), .load_factor = 2.0});
  worker_->start();
  EXPECT_EQ(mib(80), account_.child("loading").used());
  loop_.advance(milliseconds(100));
  EXPECT_EQ(Bytes(), account_.child("loading").used());
  EXPECT_EQ(mib(10), account_.child("weights").used());  // as counted
  EXPECT_EQ(mib(20), account_.child("base").used());     // RssAnon − weights
  EXPECT_EQ(mib(20), worker_->memory().base);
  EXPECT_EQ(mib(10), worker_->memory().weights);
}

TEST_F(WorkerStart, ChargesSharedMemoryBeforeItIsMade) {
  make_ready();
  // Two slots, a region and the buffer for its copy.
  EXPECT_EQ(kib(4 * 64), shared_.used());
  EXPECT_EQ(kib(64), Bytes(worker_->input_slot(1).size()));
}

TEST_F(WorkerStart, SaysHowMuchIsMissingAndStartsWhenItIsFree) {
  make_worker({.weight_file = mib(100), .load_factor = 2.0});
  memory::Charge others = budget_.root().charge(mib(300)).value();
  worker_->start();
  EXPECT_EQ(WorkerState::kWaitingToStart, worker_->state());
  EXPECT_EQ("over_budget", worker_->last_error().reason());
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("100.0 MiB are missing"));
  EXPECT_EQ(0U, factory_.starts());
  EXPECT_EQ(mib(300), budget_.root().used());
  others.release();
  worker_->memory_released();
  EXPECT_EQ(WorkerState::kLoading, worker_->state());
  EXPECT_EQ(0U, worker_->deaths());
}

TEST_F(WorkerStart, LooksForMemoryEachSecondByItself) {
  make_worker({.weight_file = mib(100)});
  memory::Charge others = budget_.root().charge(mib(300)).value();
  worker_->start();
  loop_.advance(seconds(2));
  EXPECT_EQ(0U, factory_.starts());
  others.release();
  loop_.advance(seconds(1));
  EXPECT_EQ(1U, factory_.starts());
}

TEST_F(WorkerStart, EndsAProcessWhoseBaseDoesNotFitAndWaitsForRoom) {
  memory::Charge others = budget_.root().charge(mib(380)).value();
  worker_->start();
  loop_.advance(seconds(1));  // loaded: 30 MiB, 19.75 are free
  EXPECT_TRUE(factory_.living().empty());
  EXPECT_EQ("over_budget", worker_->last_error().reason());
  EXPECT_EQ(0U, worker_->deaths());
  loop_.advance(seconds(10));
  EXPECT_EQ(1U, factory_.starts()) << "its need is known now: no process is started in vain";
  others.release();
  worker_->memory_released();
  loop_.advance(milliseconds(100));
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerStart, RecordsMoreThanWasReservedWhileItLoads) {
  factory_.model.load_time = seconds(10);
  worker_->start();
  loop_.advance(seconds(1));
  EXPECT_EQ(mib(30), account_.child("loading").used());
}

TEST_F(WorkerStart, KeepsWhyAModelDidNotLoadAndTriesAgain) {
  factory_.model.load_failure = wire::Failed{"bad_model_file", "not a zip archive"};
  worker_->start();
  loop_.advance(milliseconds(101));
  EXPECT_EQ(WorkerState::kWaitingToStart, worker_->state());
  EXPECT_EQ("load_failed", worker_->last_error().reason());
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("bad_model_file: not a zip archive"));
  factory_.model.load_failure.reset();
  loop_.advance(milliseconds(600));
  EXPECT_TRUE(worker_->is_idle());
  EXPECT_EQ(2U, factory_.starts());
}

TEST_F(WorkerStart, GivesUpALoadThatTakesTooLong) {
  make_worker({.load_timeout = seconds(2)});
  factory_.model.load_time = seconds(3);
  worker_->start();
  loop_.advance(seconds(2) + milliseconds(1));
  EXPECT_EQ(WorkerState::kWaitingToStart, worker_->state());
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("loading took longer than 2 s"));
}

TEST_F(WorkerStart, TriesAgainWhenTheProgramCannotBeStarted) {
  factory_.failing_starts = 1;
  worker_->start();
  EXPECT_EQ("no_program", worker_->last_error().reason());
  EXPECT_EQ(Bytes(), budget_.root().used());
  loop_.advance(milliseconds(500));
  EXPECT_EQ(WorkerState::kLoading, worker_->state());
}

TEST_F(WorkerStart, RefusesALoadedWithoutItsDocument) {
  worker_->start();
  process().say({0, wire::Loaded{}});
  loop_.advance(milliseconds(1));
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("broke the protocol"));
}

TEST_F(WorkerStart, StopsWithoutAProcess) {
  worker_->stop(seconds(1));
  EXPECT_EQ(WorkerState::kStopped, worker_->state());
  worker_->start();
  loop_.advance(seconds(100));
  EXPECT_EQ(0U, factory_.starts());
}

// Every charge on the way may fail: nothing is lost, and the next try succeeds.
TEST_F(WorkerStart, GivesEverythingBackWhicheverChargeFails) {
  for (int n = 1; n <= 6; ++n) {
    make_worker({.weight_file = mib(5)});
    const Bytes before = budget_.root().used();
    ASSERT_EQ(Bytes(), before);
    budget_.fail_nth_charge(n);
    worker_->start();
    loop_.advance(seconds(3));
    EXPECT_TRUE(worker_->is_idle()) << n << ": " << worker_->last_error().to_string();
  }
  budget_.fail_nth_charge(0);
}

}  // namespace
}  // namespace tonnage::supervisor
