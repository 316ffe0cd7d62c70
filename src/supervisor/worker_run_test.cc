// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "testkit/worker_fixture.h"

namespace tonnage::supervisor {
namespace {

using WorkerRun = testkit::WorkerTest;
using testkit::FakeBatch;
using testkit::FakeFault;

TEST_F(WorkerRun, AnswersOnceWithTheOutputBytes) {
  factory_.model.outputs = testkit::echo_outputs;
  make_ready();
  const std::array<std::int64_t, 2> dims{2, 2};
  const wire::TensorLayout input{tensor::DataType::kInt64, tensor::Shape::make(dims).value(), 0, 32};
  const auto slot = as_elements<std::int64_t>(worker_->input_slot(1));
  slot[0] = 7;
  slot[3] = 9;
  std::vector<std::int64_t> seen;
  const Status started = worker_->run({1, 2, 2, mib(1), seconds(5), {input}}, [&](RunOutcome outcome) {
    const auto& done = std::get<RunDone>(outcome);
    EXPECT_EQ(std::vector{input}, done.outputs);
    EXPECT_EQ(milliseconds(5), done.round_trip);
    EXPECT_EQ(kib(64), done.peak);
    const auto values = as_elements<std::int64_t>(done.region);
    seen.assign(values.begin(), values.end());
  });
  EXPECT_TRUE(started.is_ok());
  EXPECT_EQ(WorkerState::kBusy, worker_->state());
  loop_.advance(milliseconds(5));
  EXPECT_EQ((std::vector<std::int64_t>{7, 0, 0, 9}), seen);
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerRun, MayStartTheNextBatchFromInsideTheAnswer) {
  make_ready();
  const int changes = changes_;
  on_answer_ = [this] {
    if (answers_ < 3) {
      EXPECT_TRUE(run().is_ok());
    }
  };
  ASSERT_TRUE(run().is_ok());
  loop_.advance(milliseconds(15));
  EXPECT_EQ(3, answers_);
  EXPECT_TRUE(worker_->is_idle());
  EXPECT_EQ(changes + 1, changes_) << "busy to busy is no change";
}

TEST_F(WorkerRun, RefusesAGrantBeyondTheBudgetAndStaysIdle) {
  make_ready();
  const Bytes largest = worker_->largest_grant();
  const Bytes cushion(budget_.root().limit().count() / 32);  // at most what it leaves
  EXPECT_EQ("over_budget", run(largest + cushion).reason());
  EXPECT_TRUE(worker_->is_idle());
  EXPECT_EQ(0, answers_);
  EXPECT_TRUE(run(largest).is_ok());
}

TEST_F(WorkerRun, ReservesBeforeAndHoldsAfterwardsWhatBecameResident) {
  make_ready();
  factory_.model.peak = [](const FakeBatch&) { return mib(48); };
  EXPECT_EQ(mib(58), worker_->growth_for(mib(50)));
  ASSERT_TRUE(run(mib(50)).is_ok());
  EXPECT_EQ(mib(58), worker_->memory().lease);
  EXPECT_EQ(mib(50), worker_->memory().grant);
  loop_.advance(milliseconds(5));
  EXPECT_EQ(Bytes(), worker_->memory().grant);
  EXPECT_EQ(mib(49) + Bytes(mib(49).count() / 16), worker_->memory().lease);
  EXPECT_EQ(Bytes(), worker_->growth_for(mib(50)));
}

TEST_F(WorkerRun, ChargesAWorkerThatIsCappedWithItsFactor) {
  supervisor::WorkerOptions options;
  options.charged_per_byte = 1.25;
  make_worker(std::move(options));
  make_ready();
  factory_.model.peak = [](const FakeBatch&) { return mib(48); };
  ASSERT_TRUE(run(mib(40)).is_ok());
  EXPECT_EQ(mib(60), worker_->memory().lease) << "40 and the first slack of 8, a quarter more";
}

TEST_F(WorkerRun, KnowsTheOverheadOfAWorkerThatFreesAtOnce) {
  factory_.model.frees_at_once = true;
  factory_.model.peak = [](const FakeBatch&) { return mib(40); };
  make_ready();
  ASSERT_TRUE(run(mib(40)).is_ok());
  loop_.advance(milliseconds(5));
  EXPECT_LE(worker_->memory().lease, mib(2)) << "others may have what went back to the kernel";
  ASSERT_TRUE(run(mib(40)).is_ok());
  EXPECT_EQ(mib(41), worker_->memory().lease);
}

TEST_F(WorkerRun, LimitsDataBeforeARunThatGrowsTheLease) {
  make_ready();
  EXPECT_FALSE(process().data_limit().has_value());
  ASSERT_TRUE(run(mib(10)).is_ok());
  const Bytes first = process().data_limit().value();
  loop_.advance(milliseconds(5));
  ASSERT_TRUE(run(mib(1)).is_ok());
  EXPECT_EQ(first, process().data_limit().value());
  loop_.advance(milliseconds(5));
  ASSERT_TRUE(run(mib(100)).is_ok());
  EXPECT_GT(process().data_limit().value(), first + mib(80));
}

TEST_F(WorkerRun, MapsEachErrorToItsCause) {
  make_ready();
  const std::pair<FakeFault, RunFailure> causes[] = {{FakeFault::kThrow, RunFailure::kModelError},
                                                     {FakeFault::kPressure, RunFailure::kPressure},
                                                     {FakeFault::kBadOutput, RunFailure::kBadOutput}};
  for (const auto& [fault, expected] : causes) {
    factory_.model.fault = [fault = fault](const FakeBatch&) { return fault; };
    ASSERT_TRUE(run().is_ok());
    loop_.advance(milliseconds(5));
    EXPECT_EQ(expected, failure());
    EXPECT_TRUE(worker_->is_idle());
  }
  EXPECT_EQ(1U, factory_.starts());
}

TEST_F(WorkerRun, SaysWhatAnOverGrantWouldHaveNeeded) {
  make_ready();
  factory_.model.peak = [](const FakeBatch&) { return mib(3); };
  ASSERT_TRUE(run(mib(1)).is_ok());
  loop_.advance(milliseconds(5));
  EXPECT_EQ(RunFailure::kOverGrant, failure());
  EXPECT_EQ(mib(3), failure_->needed);
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerRun, ReplacesAWorkerWhoseDeviceIsBroken) {
  make_ready();
  factory_.model.fault = [](const FakeBatch&) { return FakeFault::kSticky; };
  on_answer_ = [this] { EXPECT_FALSE(worker_->is_idle()); };
  ASSERT_TRUE(run().is_ok());
  loop_.advance(milliseconds(6));
  EXPECT_EQ(RunFailure::kStickyDevice, failure());
  loop_.advance(milliseconds(600));
  EXPECT_TRUE(worker_->is_idle());
  EXPECT_EQ(2U, factory_.starts());
}

TEST_F(WorkerRun, GivesALargerOutputRegionOnce) {
  factory_.model.outputs = testkit::blank_outputs(100000);  // 4 rows: 1.6 MB
  factory_.model.output_bytes = [](const FakeBatch&) { return Bytes(1600000); };
  make_ready();
  const Bytes before = shared_.used();
  std::size_t copied = 0;
  ASSERT_TRUE(worker_
                  ->run({0, 4, 8, mib(1), seconds(5), {}},
                        [&](RunOutcome outcome) { copied = std::get<RunDone>(outcome).region.size(); })
                  .is_ok());
  loop_.advance(milliseconds(6));
  EXPECT_EQ(1600000U, copied);
  // The old region and copy went, the new ones are charged in whole pages.
  EXPECT_EQ(before - kib(2 * 64) + round_up(Bytes(1600000), kib(4)) * 2, shared_.used());
}

TEST_F(WorkerRun, DiscardsOutputsThatTheBudgetDoesNotHold) {
  factory_.model.output_bytes = [](const FakeBatch&) { return mib(32); };
  make_ready();
  const memory::Charge others = budget_.root().charge(budget_.root().available() - mib(20)).value();
  ASSERT_TRUE(run(mib(1)).is_ok());
  loop_.advance(milliseconds(6));
  EXPECT_EQ(RunFailure::kBadOutput, failure());
  EXPECT_TRUE(worker_->is_idle());
}

TEST_F(WorkerRun, ShrinksTheLeaseOnlyAfterTrimAndANewReading) {
  make_ready();
  factory_.model.peak = [](const FakeBatch&) { return mib(40); };
  ASSERT_TRUE(run(mib(40)).is_ok());
  loop_.advance(milliseconds(5));
  EXPECT_GE(worker_->memory().lease, mib(41));
  process().set_resident(mib(2));  // freed, but nobody has read it after a trim
  loop_.advance(seconds(2));
  EXPECT_GE(worker_->memory().lease, mib(41));
  process().set_resident(mib(41));
  worker_->trim();
  loop_.advance(milliseconds(1));
  EXPECT_EQ(kib(64), worker_->memory().lease);
}

TEST_F(WorkerRun, TrimsAfterTheBatchThatIsRunning) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  worker_->trim();
  EXPECT_EQ("run", process().received().back());
  loop_.advance(milliseconds(6));
  EXPECT_EQ("trim", process().received().back());
  EXPECT_EQ(kib(64), worker_->memory().lease);
}

TEST_F(WorkerRun, SeesGrowthBetweenBatchesWithinASecond) {
  make_ready();
  process().set_resident(mib(33));
  loop_.advance(seconds(1));
  EXPECT_EQ(mib(33), worker_->memory().lease);
  EXPECT_EQ(mib(63), worker_->memory().reading.anonymous);
}

TEST_F(WorkerRun, ReportsLiveBytesAfterEachBatch) {
  make_ready();
  EXPECT_EQ(mib(10), worker_->memory().live_baseline);
  factory_.model.weights = mib(11);  // a hoarder
  ASSERT_TRUE(run().is_ok());
  loop_.advance(milliseconds(5));
  EXPECT_EQ(mib(11), worker_->memory().live);
  EXPECT_EQ(mib(10), worker_->memory().live_baseline);
}

TEST_F(WorkerRun, CountsARunOnABusyWorkerAsABug) {
  make_ready();
  ASSERT_TRUE(run().is_ok());
  const ExpectBugs expected;
  EXPECT_EQ("not_idle", run().reason());
}

TEST_F(WorkerRun, NamesWhatAModelKeepsAndForecastsItsEnd) {
  factory_.model.keeps_per_row = kib(64);
  make_ready();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(run().is_ok());
    loop_.advance(milliseconds(10));
  }
  const memory::RetentionForecast seen = worker_->memory().retention;
  EXPECT_TRUE(seen.is_named);
  EXPECT_EQ(kib(64) * 4 * 50, seen.kept);
  EXPECT_DOUBLE_EQ(64.0 * 1024, seen.bytes_per_row);
  const auto room = static_cast<double>((worker_->largest_grant() - kib(64)).count());
  EXPECT_NEAR(room / (64 * 1024), static_cast<double>(seen.rows_left), 1);
  EXPECT_NEAR(room / (64 * 1024) / 400, to_seconds(seen.time_left), 0.5) << "four rows each 10 ms";
}

TEST_F(WorkerRun, SaysWhatItsMemoryConsistsOfWhenReadyAndAfterBatches) {
  make_ready();
  loop_.advance(milliseconds(1));
  ASSERT_TRUE(worker_->memory().accounts.has_value());
  EXPECT_EQ(Bytes(), worker_->memory().accounts->tensors);
  factory_.model.keeps_per_row = kib(512);
  factory_.model.overhead = mib(3);
  ASSERT_TRUE(run().is_ok());
  loop_.advance(seconds(1) + milliseconds(1));
  const memory::WorkerAccounts seen = *worker_->memory().accounts;
  EXPECT_EQ(worker_->memory().reading.anonymous, seen.resident);
  EXPECT_EQ(factory_.model.base, seen.libraries);
  EXPECT_EQ(factory_.model.weights, seen.weights);
  EXPECT_EQ(mib(2), seen.tensors);
  EXPECT_EQ(mib(1) + kib(64), seen.caches);
  EXPECT_EQ(0, seen.remainder);
}

TEST_F(WorkerRun, AsksWhatItsMemoryConsistsOfBetweenBatchesOnly) {
  factory_.model.time = [](const FakeBatch&) { return milliseconds(700); };
  make_ready();
  const auto stats_asked = [this] { return std::ranges::count(process().received(), "stat"); };
  EXPECT_EQ(1, stats_asked());
  on_answer_ = [this] { EXPECT_TRUE(run().is_ok()); };
  ASSERT_TRUE(run().is_ok());
  loop_.advance(milliseconds(1300));
  EXPECT_EQ(1, stats_asked()) << "a batch is running when the second is over";
  loop_.advance(milliseconds(200));
  EXPECT_EQ(2, stats_asked());
  EXPECT_EQ("run", process().received().back());
  on_answer_ = {};
  loop_.advance(seconds(5));
  EXPECT_LE(stats_asked(), 4) << "an idle worker has nothing new to say";
}

TEST_F(WorkerRun, EndsAProcessThatTellsWhatItWasNotAsked) {
  make_ready();
  loop_.advance(milliseconds(1));
  process().say({0, wire::Stats{}});
  EXPECT_FALSE(worker_->is_idle());
}

TEST_F(WorkerRun, ANewProcessStartsWithoutRetention) {
  factory_.model.keeps_per_row = kib(64);
  make_ready();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(run().is_ok());
    loop_.advance(milliseconds(10));
  }
  process().die({ExitReason::Kind::kSignal, 9});
  EXPECT_FALSE(worker_->memory().retention.is_named);
  loop_.advance(seconds(1));
  ASSERT_TRUE(worker_->is_idle());
  EXPECT_EQ(Bytes(), worker_->memory().retention.kept);
}

}  // namespace
}  // namespace tonnage::supervisor
