// SPDX-License-Identifier: Apache-2.0
// Worker and ChildProcess with real worker processes: the stub, good and bad.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <map>
#include <optional>
#include <string>

#include "supervisor/child_process.h"
#include "supervisor/worker.h"
#include "testkit/paths.h"
#include "testkit/poll_loop.h"

namespace tonnage::supervisor {
namespace {

using StubTable = std::map<std::string, std::string>;

std::string stub_program() { return testkit::built_program("tonnage-worker-stub"); }

wire::TensorLayout int64_rows(std::int64_t rows, std::int64_t columns) {
  const std::array<std::int64_t, 2> dims{rows, columns};
  const auto shape = tensor::Shape::make(dims).value();
  return {tensor::DataType::kInt64, shape, 0, shape.bytes_of(tensor::DataType::kInt64).count()};
}

// Loop, budget and factory of a small front.
struct Front {
  testkit::PollLoop loop;
  ChildProcessFactory processes{loop};
  std::unique_ptr<telemetry::Log> log = telemetry::make_null_log();
  memory::Budget budget{"host", mib(512)};
};

// A worker of the front with one stub model, and what became of its last batch.
class Stub {
 public:
  Stub(Front& front, const std::string& name, StubTable table)
      : front_(front),
        name_(name),
        worker_(options(name, std::move(table)),
                {front.loop, front.processes, front.budget.root().child(name),
                 front.budget.root().child("shared"), *front.log},
                [] {}) {
    worker_.start();
  }

  Worker* operator->() { return &worker_; }
  [[nodiscard]] bool wait_idle() {
    return front_.loop.run_until([this] { return worker_.is_idle(); });
  }
  // Starts a batch of `rows` rows of two ids each, all `value`.
  Status begin(std::int64_t rows, std::int64_t value, Bytes grant = mib(4), Duration watchdog = seconds(50)) {
    const auto layout = int64_rows(rows, 2);
    for (auto& id : as_elements<std::int64_t>(worker_.input_slot(0).first(layout.bytes))) id = value;
    outcome_.reset();
    return worker_.run({0, static_cast<std::uint32_t>(rows), 2, grant, watchdog, {layout}},
                       [this](RunOutcome outcome) { take(std::move(outcome)); });
  }
  [[nodiscard]] bool wait_answer() {
    return front_.loop.run_until([this] { return outcome_.has_value(); });
  }
  void run(std::int64_t rows, std::int64_t value, Bytes grant = mib(4), Duration watchdog = seconds(50)) {
    ASSERT_TRUE(wait_idle()) << worker_.last_error().to_string();
    ASSERT_TRUE(begin(rows, value, grant, watchdog).is_ok());
    ASSERT_TRUE(wait_answer()) << name_;
  }

  int answers() const { return answers_; }
  bool is_done() const { return outcome_ && std::holds_alternative<RunDone>(*outcome_); }
  const RunDone& done() const { return std::get<RunDone>(outcome_.value()); }
  const RunFailed& failed() const { return std::get<RunFailed>(outcome_.value()); }
  const std::vector<std::byte>& region() const { return region_; }

 private:
  static WorkerOptions options(const std::string& name, StubTable table) {
    WorkerOptions o;
    o.name = name;
    o.command.program = stub_program();
    // Under the address sanitizer freed memory would stay with the stub; elsewhere this means nothing.
    o.command.environment = {{"ASAN_OPTIONS", "quarantine_size_mb=0"}};
    o.load.model = name;
    o.load.version = "1";
    o.load.route = "stub";
    o.load.inputs = {{"x", tensor::DataType::kInt64, {-1, -1}}};
    o.load.load_limit = mib(64);
    o.load.options = std::move(table);
    o.slot_bytes = kib(64);
    o.output_bytes = kib(64);
    return o;
  }
  void take(RunOutcome outcome) {
    ++answers_;
    region_.clear();
    if (auto* done = std::get_if<RunDone>(&outcome)) {
      region_.assign(done->region.begin(), done->region.end());
      done->region = {};
    }
    outcome_ = std::move(outcome);
  }

  Front& front_;
  std::string name_;
  std::optional<RunOutcome> outcome_;
  std::vector<std::byte> region_;
  int answers_ = 0;
  Worker worker_;
};

class SupervisorTest : public testing::Test {
 protected:
  ~SupervisorTest() override { EXPECT_EQ(Bytes(), front_.budget.root().used()); }
  Front front_;
};

TEST_F(SupervisorTest, EchoesThroughARealProcess) {
  Stub echo(front_, "echo", {{"model", "echo"}});
  for (std::int64_t value = 1; value <= 100; ++value) {
    echo.run(4, value);
    ASSERT_TRUE(echo.is_done());
    ASSERT_EQ(64U, echo.region().size());
    EXPECT_EQ(value, as_elements<std::int64_t>(ByteView(echo.region())).back());
  }
  EXPECT_EQ(100, echo.answers());
  EXPECT_GT(echo->memory().base, Bytes());
  EXPECT_EQ(0U, echo->deaths());
}

TEST_F(SupervisorTest, SurvivesAKillInTheMiddleOfABatch) {
  Stub sleepy(front_, "sleepy", {{"model", "sleepy"}, {"sleep_ms", "600000"}});
  ASSERT_TRUE(sleepy.wait_idle());
  ASSERT_TRUE(sleepy.begin(4, 1).is_ok());
  ASSERT_EQ(0, ::kill(sleepy->pid(), SIGKILL));
  ASSERT_TRUE(sleepy.wait_answer());
  EXPECT_EQ(RunFailure::kDied, sleepy.failed().failure);
  EXPECT_EQ(1, sleepy.answers());
  EXPECT_TRUE(sleepy.wait_idle());
  EXPECT_EQ(1U, sleepy->deaths());
}

TEST_F(SupervisorTest, NamesTheSignalOfAModelThatAborts) {
  Stub aborter(front_, "aborter", {{"model", "aborter"}, {"abort_on", "666"}});
  aborter.run(4, 1);
  EXPECT_TRUE(aborter.is_done());
  aborter.run(4, 666);
  EXPECT_EQ(RunFailure::kDied, aborter.failed().failure);
  EXPECT_NE(std::string::npos, aborter.failed().detail.find("signal 6"));
  aborter.run(4, 1);
  EXPECT_TRUE(aborter.is_done());
}

TEST_F(SupervisorTest, KillsABatchThatNeverEnds) {
  Stub sleepy(front_, "sleepy", {{"model", "sleepy"}, {"sleep_ms", "600000"}});
  sleepy.run(1, 1, mib(4), milliseconds(20));
  EXPECT_EQ(RunFailure::kWatchdog, sleepy.failed().failure);
}

TEST_F(SupervisorTest, GrantsHoldAndSayWhatWouldHaveBeenNeeded) {
  Stub quadratic(front_, "quadratic", {{"model", "quadratic"}, {"bytes_per_token", "1MiB"}});
  quadratic.run(4, 1, mib(2));  // 4 rows × 2 tokens × 1 MiB
  EXPECT_EQ(RunFailure::kOverGrant, quadratic.failed().failure);
  EXPECT_GT(quadratic.failed().needed, mib(2));
  quadratic.run(4, 1, mib(9));
  ASSERT_TRUE(quadratic.is_done());
  EXPECT_GE(quadratic.done().peak, mib(8));
  EXPECT_GE(quadratic->memory().reading.resident_peak, mib(8)) << "the kernel saw it, too";
  EXPECT_EQ(0U, quadratic->deaths());
}

TEST_F(SupervisorTest, GivesLeasedMemoryBackAfterTrim) {
  Stub cache(front_, "cache", {{"model", "shape_cache"}, {"cache_bytes_per_token", "4MiB"}});
  cache.run(4, 1, mib(40));  // 4 rows × 2 tokens × 4 MiB are kept
  ASSERT_TRUE(cache.is_done());
  EXPECT_GE(cache->memory().lease, mib(32));
  cache->trim();
  EXPECT_TRUE(front_.loop.run_until([&] { return cache->memory().lease < mib(16); }));
}

TEST_F(SupervisorTest, ShowsBytesThatAModelKeepsPerCall) {
  Stub hoarder(front_, "hoarder", {{"model", "hoarder"}, {"keep_bytes_per_call", "1MiB"}});
  for (int i = 0; i < 5; ++i) hoarder.run(1, 1);
  ASSERT_TRUE(hoarder.is_done());
  EXPECT_EQ(hoarder->memory().live_baseline + mib(5), hoarder->memory().live);
}

TEST_F(SupervisorTest, SaysWhyAModelDoesNotLoad) {
  Stub bad(front_, "bad", {{"model", "bad_load"}});
  EXPECT_TRUE(front_.loop.run_until([&] { return bad->last_error().reason() == "load_failed"; }));
  EXPECT_FALSE(bad->is_idle());
}

class Malicious : public SupervisorTest, public testing::WithParamInterface<const char*> {};

// One batch for the malicious worker, and meanwhile and afterwards batches for an honest one.
TEST_P(Malicious, NeverKillsBlocksOrMisleadsTheFront) {
  Stub honest(front_, "honest", {{"model", "echo"}});
  Stub liar(front_, "liar", {{"model", "malicious"}, {"mode", GetParam()}});
  ASSERT_TRUE(liar.wait_idle()) << liar->last_error().to_string();
  ASSERT_TRUE(liar.begin(4, 42, mib(4), seconds(2)).is_ok());
  for (int i = 0; i < 50; ++i) {
    honest.run(2, i);
    ASSERT_TRUE(honest.is_done());
    EXPECT_EQ(i, as_elements<std::int64_t>(ByteView(honest.region())).back());
  }
  ASSERT_TRUE(liar.wait_answer());
  EXPECT_EQ(1, liar.answers());
  if (liar.is_done()) {
    for (const auto& output : liar.done().outputs) {
      EXPECT_LE(output.offset + output.bytes, liar.region().size())
          << "promised to lie inside what was copied";
    }
  }
  // Replaced or forgiven: it is idle again, and everything it may still say costs nobody else.
  EXPECT_TRUE(liar.wait_idle()) << liar->last_error().to_string();
  honest.run(2, 7);
  EXPECT_TRUE(honest.is_done());
  EXPECT_EQ(0U, honest->deaths());
  EXPECT_EQ(1, liar.answers());
}

INSTANTIATE_TEST_SUITE_P(Modes, Malicious,
                         testing::Values("shrink", "grow", "punch_holes", "racing_lengths", "answer_twice",
                                         "wrong_ticket", "wrong_type", "outside_region", "wrapping_offset",
                                         "huge_dims", "negative_dims", "more_rows", "half_message",
                                         "close_in_message", "leave_quietly", "garbage", "empty_message",
                                         "flood", "send_fds", "too_many_fds", "never_answer", "need_too_much",
                                         "need_for_ever"),
                         [](const auto& instance) { return std::string(instance.param); });

class MaliciousLoad : public SupervisorTest, public testing::WithParamInterface<const char*> {};

TEST_P(MaliciousLoad, IsRefusedWithAReason) {
  Stub liar(front_, "liar", {{"model", "malicious"}, {"mode", GetParam()}});
  EXPECT_TRUE(front_.loop.run_until([&] { return liar->deaths() >= 1; }));
  EXPECT_NE(std::string::npos, liar->last_error().detail().find("broke the protocol"))
      << liar->last_error().to_string();
}

INSTANTIATE_TEST_SUITE_P(Modes, MaliciousLoad,
                         testing::Values("no_document", "unsealed_document", "bad_document"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_F(SupervisorTest, DiesWhenADoneComesUnasked) {
  Stub liar(front_, "liar", {{"model", "malicious"}, {"mode", "answer_unasked"}});
  EXPECT_TRUE(front_.loop.run_until([&] { return liar->deaths() >= 1; }));
}

// In a process of its own: a front with one worker. Tells the worker's pid and then only waits.
[[noreturn]] void be_a_front(int pid_pipe) {
  Front front;
  Stub sleepy(front, "sleepy", {{"model", "sleepy"}});
  if (!sleepy.wait_idle()) ::_exit(1);
  const pid_t worker = sleepy->pid();
  (void)!::write(pid_pipe, &worker, sizeof worker);
  (void)front.loop.run_until([] { return false; });
  ::_exit(1);
}

TEST(Orphans, NoneSurvivesTheFrontsDeath) {
  std::array<int, 2> ends{};
  ASSERT_EQ(0, ::pipe(ends.data()));
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t front = ::fork();
  if (front == 0) be_a_front(writing.get());
  writing.reset();
  pid_t worker = 0;
  const ssize_t got = ::read(reading.get(), &worker, sizeof worker);
  ASSERT_EQ(static_cast<ssize_t>(sizeof worker), got);
  const UniqueFd watched(static_cast<int>(::syscall(SYS_pidfd_open, worker, 0U)));
  ASSERT_TRUE(watched);
  pollfd gone{watched.get(), POLLIN, 0};
  EXPECT_EQ(0, ::poll(&gone, 1, 0)) << "it lives while its front does";
  ASSERT_EQ(0, ::kill(front, SIGKILL));
  ASSERT_EQ(front, ::waitpid(front, nullptr, 0));
  EXPECT_EQ(1, ::poll(&gone, 1, 60000)) << "the worker outlived its front";
}

}  // namespace
}  // namespace tonnage::supervisor
