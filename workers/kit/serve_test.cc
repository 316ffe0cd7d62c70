// SPDX-License-Identifier: Apache-2.0
// What only an ill-behaved Runtime can show; whole workers are driven by tests/integration.
#include "kit/serve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <thread>

#include "kit/process_memory.h"
#include "testkit/example_messages.h"
#include "wire/channel.h"
#include "wire/segment.h"

namespace tonnage::kit {
namespace {

using testkit::shape_of;

class ScriptedRuntime final : public Runtime {
 public:
  std::function<RunResult(const RunView&)> on_run;
  int released = 0;

  Result<Loaded> load(const wire::LoadDoc&) override { return Loaded{.doc = {.runtime = "scripted"}}; }
  RunResult run(const RunView& view) override { return on_run(view); }
  void release_outputs() override { ++released; }
  void trim() override {}
  Bytes live() const override { return kib(released == 0 ? 8 : 4); }
};

// A front that blocks: the worker's loop runs in a thread of this process.
class Serve : public testing::Test {
 protected:
  Serve() : pair_(wire::Channel::make_pair().value()), front_(std::move(pair_.first)) {
    EXPECT_EQ(0, ::fcntl(front_.fd(), F_SETFL, O_RDWR));
    worker_ = std::jthread(
        [this, fd = pair_.second.release()] { exit_ = serve(wire::Channel(UniqueFd(fd)), runtime_); });
    const auto doc = wire::sealed_text("load", wire::to_json(wire::LoadDoc{.model = "m"}));
    const std::array<int, 4> fds = {doc->get(), slot_.fd(), slot_.fd(), region_.fd()};
    EXPECT_TRUE(front_.send({.ticket = 0, .body = wire::Hello{}}).is_ok());
    EXPECT_TRUE(front_.send({.ticket = 0, .body = wire::Load{4096, 4096}}, fds).is_ok());
    EXPECT_EQ("loaded", wire::message_name(front_.receive()->message.body));
  }
  ~Serve() override { (void)front_.send({.ticket = 0, .body = wire::Stop{}}); }

  wire::Message ask(std::uint64_t ticket, wire::Body body) {
    EXPECT_TRUE(front_.send({.ticket = ticket, .body = std::move(body)}).is_ok());
    return front_.receive()->message;
  }
  wire::Message ask_run(std::uint64_t ticket = 5) {
    return ask(ticket, wire::Run{.slot = 0, .rows = 1, .length = 0, .grant = {}, .inputs = {}});
  }
  wire::ErrorKind kind_of(const wire::Message& message) { return std::get<wire::Error>(message.body).kind; }

  ScriptedRuntime runtime_;
  wire::Segment slot_ = wire::Segment::create("slot", kib(4)).value();
  wire::Segment region_ = wire::Segment::create("region", kib(4)).value();
  std::pair<wire::Channel, UniqueFd> pair_;
  wire::Channel front_;
  int exit_ = -1;
  std::jthread worker_;
};

TEST_F(Serve, AnswersForAnExceptionThatTheRuntimeLetThrough) {
  runtime_.on_run = [](const RunView&) -> RunResult { throw std::runtime_error("boom"); };
  const auto reply = ask_run();
  EXPECT_EQ(5U, reply.ticket);
  EXPECT_EQ(wire::ErrorKind::kModelError, kind_of(reply));
  runtime_.on_run = [](const RunView&) -> RunResult { throw std::bad_alloc(); };
  EXPECT_EQ(wire::ErrorKind::kPressure, kind_of(ask_run()));
}

TEST_F(Serve, RefusesAnOutputWhoseBytesAreNotThoseOfItsShape) {
  static constexpr std::array<std::byte, 8> kData{};
  runtime_.on_run = [](const RunView&) -> RunResult {
    return RunOutputs{.outputs = {{tensor::DataType::kFp32, shape_of({1, 3}), kData}}};
  };
  EXPECT_EQ(wire::ErrorKind::kBadOutput, kind_of(ask_run()));
}

TEST_F(Serve, RefusesMoreOutputsThanAMessageHolds) {
  runtime_.on_run = [](const RunView&) -> RunResult {
    return RunOutputs{.outputs =
                          std::vector<Tensor>(wire::kMaxTensors + 1, Tensor{.shape = shape_of({1, 0})})};
  };
  EXPECT_EQ(wire::ErrorKind::kBadOutput, kind_of(ask_run()));
}

TEST_F(Serve, ReportsWhatIsLiveAfterTheOutputsWereReleased) {
  runtime_.on_run = [](const RunView&) -> RunResult { return RunOutputs{.peak = kib(3)}; };
  const auto done = std::get<wire::Done>(ask_run().body);
  EXPECT_EQ(kib(3), done.peak);
  EXPECT_EQ(kib(4), done.live);
}

TEST_F(Serve, EndsWithAnErrorWhenTheFrontSpeaksOutOfTurn) {
  ASSERT_TRUE(front_.send({.ticket = 0, .body = wire::Hello{}}).is_ok());
  worker_.join();
  EXPECT_EQ(kProtocolError, exit_);
}

TEST(ResidentReader, SeesMemoryThatWasTouched) {
  const ResidentReader reader;
  const Bytes before = reader.read();
  ASSERT_GT(before, Bytes());
  const std::vector<char> touched(8U << 20U, 'x');
  EXPECT_GE(reader.read(), before + mib(7)) << touched[1];
}

TEST(Heap, NoMoreIsInUseThanIsResidentAlsoWhereFreePagesWereTakenAgain) {
  struct Case {
    Heap before;
    Heap now;
    Heap growth;
  };
  const Case cases[] = {{{mib(10), mib(8)}, {mib(30), mib(20)}, {mib(20), mib(12)}},
                        {{mib(10), mib(2)}, {mib(12), mib(11)}, {mib(2), mib(2)}},
                        {{mib(10), mib(2)}, {mib(9), mib(8)}, {Bytes(), Bytes()}},
                        {{mib(10), mib(8)}, {mib(12), mib(7)}, {mib(2), Bytes()}}};
  for (const Case& c : cases) {
    const Heap growth = growth_since(c.before, c.now);
    EXPECT_EQ(c.growth.resident, growth.resident);
    EXPECT_EQ(c.growth.used, growth.used);
  }
}

}  // namespace
}  // namespace tonnage::kit
