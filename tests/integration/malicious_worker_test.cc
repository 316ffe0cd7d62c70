// SPDX-License-Identifier: Apache-2.0
// Every mode of the malicious stub against the room `wire`: what the front's end of the protocol sees is
// a message that it can check, or an error; never a crash and never a wait without end.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "testkit/example_messages.h"
#include "testkit/worker_process.h"
#include "wire/load_doc.h"
#include "wire/segment.h"

namespace tonnage {
namespace {

using testkit::shape_of;
using testkit::WorkerProcess;

constexpr std::uint64_t kTicket = 7;

class Malicious : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  void send(wire::Body body, std::uint64_t ticket = 0, std::span<const int> fds = {}) {
    ASSERT_TRUE(worker_.channel().send({.ticket = ticket, .body = std::move(body)}, fds).is_ok());
  }
  void load(const std::string& mode) {
    const wire::LoadDoc doc{.model = "m", .options = {{"model", "malicious"}, {"mode", mode}}};
    const auto text = wire::sealed_text("load", wire::to_json(doc));
    const std::array<int, 4> fds = {text->get(), slot_.fd(), slot_.fd(), region_.fd()};
    send(wire::Hello{});
    send(wire::Load{slot_.size().count(), region_.size().count()}, 0, fds);
  }
  void run() {
    std::ranges::fill(as_elements<float>(slot_.view().first(64)), 2.5F);
    send(wire::Run{.slot = 0,
                   .rows = 2,
                   .length = 8,
                   .grant = mib(1),
                   .inputs = {{tensor::DataType::kFp32, shape_of({2, 8}), 0, 64}}},
         kTicket);
  }
  // The name of the next message, or the reason why there is none.
  std::string next() {
    auto packet = worker_.next();
    if (!packet.is_ok()) return std::string(packet.status().reason());
    last_ = std::move(*packet);
    return std::string(wire::message_name(last_.message.body));
  }
  const wire::TensorLayout& output() { return std::get<wire::Done>(last_.message.body).outputs.at(0); }
  // What the front does with an answer: the bytes first, then the checks.
  std::string copy_output() {
    std::array<std::byte, 64> bytes{};
    return std::string(region_.copy_out(output().offset, bytes).reason());
  }

  wire::Segment slot_ = wire::Segment::create("slot", kib(4)).value();
  wire::Segment region_ = wire::Segment::create("region", kib(4)).value();
  WorkerProcess worker_{std::vector<std::string>{testkit::built_program("tonnage-worker-stub")}};
  wire::Packet last_;
};

// After `loaded` and one run, the front's end sees this.
TEST_P(Malicious, IsSeenForWhatItIs) {
  const auto& [mode, expected] = GetParam();
  load(mode);
  ASSERT_EQ("loaded", next());
  run();
  EXPECT_EQ(expected, next());
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Malicious,
    testing::Values(std::pair("half_message", "bad_message"), std::pair("garbage", "bad_message"),
                    std::pair("empty_message", "peer_closed"), std::pair("huge_dims", "bad_message"),
                    std::pair("negative_dims", "bad_message"), std::pair("too_many_fds", "bad_message"),
                    std::pair("close_in_message", "bad_message"), std::pair("leave_quietly", "peer_closed"),
                    std::pair("wrong_type", "loaded"), std::pair("need_too_much", "need"),
                    std::pair("answer_unasked", "done")),
    [](const auto& chosen) { return chosen.param.first; });

class MaliciousMemory : public Malicious {};

TEST_P(MaliciousMemory, CannotFaultTheReader) {
  const auto& [mode, expected] = GetParam();
  load(mode);
  ASSERT_EQ("loaded", next());
  run();
  ASSERT_EQ("done", next());
  EXPECT_EQ(expected, copy_output());
  EXPECT_EQ(kib(4), region_.size());
  region_.view()[4095] = std::byte{1};  // still there to be written
  slot_.view()[4095] = std::byte{1};
}

INSTANTIATE_TEST_SUITE_P(Modes, MaliciousMemory,
                         testing::Values(std::pair("shrink", "ok"), std::pair("grow", "ok"),
                                         std::pair("punch_holes", "ok"), std::pair("racing_lengths", "ok"),
                                         std::pair("outside_region", "bad_segment"),
                                         std::pair("wrapping_offset", "bad_segment")),
                         [](const auto& chosen) { return chosen.param.first; });

TEST_F(Malicious, AnswersUnderAnotherTicketAreVisible) {
  load("wrong_ticket");
  ASSERT_EQ("loaded", next());
  run();
  ASSERT_EQ("done", next());
  EXPECT_NE(kTicket, last_.message.ticket);
}

TEST_F(Malicious, SecondAnswersAreVisible) {
  load("answer_twice");
  ASSERT_EQ("loaded", next());
  run();
  EXPECT_EQ("done", next());
  EXPECT_EQ("done", next());
}

TEST_F(Malicious, DescriptorsNobodyAskedForAreOwnedAndClosed) {
  load("send_fds");
  ASSERT_EQ("loaded", next());
  run();
  ASSERT_EQ("done", next());
  ASSERT_EQ(wire::kMaxFds, last_.fds.size());
  const int one = last_.fds[0].get();
  last_ = {};
  EXPECT_EQ(-1, ::fcntl(one, F_GETFD));
}

// A front that stops reading is not made to hold the rest: the kernel's socket buffer is the bound.
TEST_F(Malicious, FloodsAreReadOneByOneOrLeftUnread) {
  load("flood");
  ASSERT_EQ("loaded", next());
  run();
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ("stats", next());
  worker_.hang_up();
  EXPECT_EQ(0, worker_.exit_status());
}

TEST_F(Malicious, NeedsWithoutEndEndWithTheFront) {
  load("need_for_ever");
  ASSERT_EQ("loaded", next());
  run();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ("need", next());
    send(wire::Discard{}, kTicket);
  }
  worker_.hang_up();
  EXPECT_EQ(0, worker_.exit_status());
}

TEST_F(Malicious, DocumentsThatAreNotOnesAreRefused) {
  load("bad_document");
  ASSERT_EQ("loaded", next());
  const auto text = wire::read_sealed_text(last_.fds.at(0).get(), mib(1));
  EXPECT_EQ("bad_load_doc", wire::parse_loaded_doc(text.value()).status().reason());
}

TEST_F(Malicious, DocumentsThatCouldChangeAreRefused) {
  load("unsealed_document");
  ASSERT_EQ("loaded", next());
  EXPECT_EQ("bad_segment", wire::read_sealed_text(last_.fds.at(0).get(), mib(1)).status().reason());
}

}  // namespace
}  // namespace tonnage
