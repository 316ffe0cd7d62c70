// SPDX-License-Identifier: Apache-2.0
#include "wire/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "testkit/example_messages.h"

namespace tonnage::wire {
namespace {

using testkit::example_messages;
using testkit::example_run;

std::string_view reason_of(ByteView bytes) {
  const auto result = decode(bytes);
  return result.is_ok() ? "ok" : result.status().reason();
}

// Overwrites the little-endian number at `offset`.
template <typename T>
std::vector<std::byte> with(std::vector<std::byte> bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

TEST(Messages, ComeBackAsTheyWereSent) {
  for (const Message& message : example_messages()) {
    const auto bytes = encode(message);
    const auto back = decode(bytes);
    ASSERT_TRUE(back.is_ok()) << message_name(message.body) << ": " << back.status().detail();
    EXPECT_EQ(message.ticket, back->ticket);
    EXPECT_EQ(message.body.index(), back->body.index());
    EXPECT_EQ(bytes, encode(*back)) << message_name(message.body);
  }
}

TEST(Messages, KeepEveryFieldOfARun) {
  const Message sent{.ticket = 7, .body = example_run()};
  const auto got = decode(encode(sent));
  const auto& run = std::get<wire::Run>(got->body);
  EXPECT_EQ(1U, run.slot);
  EXPECT_EQ(3U, run.rows);
  EXPECT_EQ(5U, run.length);
  EXPECT_EQ(mib(2), run.grant);
  EXPECT_EQ(example_run().inputs, run.inputs);
}

// The bytes of docs/wire.md: a change here is a new version of the protocol.
TEST(Messages, LieWhereTheDocumentSays) {
  const auto bytes = encode({.ticket = 0x0102030405060708, .body = example_run()});
  EXPECT_EQ("TNNG", as_text(ByteView(bytes).first(4)));
  const auto number = [&](std::size_t offset, auto zero) {
    std::memcpy(&zero, bytes.data() + offset, sizeof zero);
    return zero;
  };
  EXPECT_EQ(1, number(4, std::uint16_t{}));
  EXPECT_EQ(5, number(6, std::uint16_t{}));
  EXPECT_EQ(bytes.size(), number(8, std::uint32_t{}));
  EXPECT_EQ(0x0102030405060708U, number(16, std::uint64_t{}));
  EXPECT_EQ(3U, number(28, std::uint32_t{}));
  EXPECT_EQ(2U * 1024 * 1024, number(40, std::uint64_t{}));
  EXPECT_EQ(2U, number(48, std::uint32_t{}));
  EXPECT_EQ(9, number(56, std::uint8_t{}));      // INT64
  EXPECT_EQ(2, number(57, std::uint8_t{}));      // rank
  EXPECT_EQ(120U, number(72, std::uint64_t{}));  // bytes
  EXPECT_EQ(5, number(88, std::int64_t{}));      // second dim
  EXPECT_EQ(56U + 2 * 88, bytes.size());
}

TEST(Messages, OfAnotherVersionAreNamedSo) {
  const auto bytes = encode({.ticket = 0, .body = Stop{}});
  EXPECT_EQ("wrong_version", reason_of(with<std::uint16_t>(bytes, 4, kVersion + 1)));
}

TEST(Messages, WithAFalseHeaderAreRefused) {
  const auto bytes = encode({.ticket = 0, .body = Stat{}});
  EXPECT_EQ("bad_message", reason_of(with<std::uint32_t>(bytes, 0, 0)));
  EXPECT_EQ("bad_message", reason_of(with<std::uint16_t>(bytes, 6, 0)));
  EXPECT_EQ("bad_message", reason_of(with<std::uint16_t>(bytes, 6, 16)));
  EXPECT_EQ("bad_message", reason_of(with<std::uint32_t>(bytes, 8, 25)));
  EXPECT_EQ("bad_message", reason_of(with<std::uint32_t>(bytes, 12, 1)));
}

TEST(Messages, WithFalseTensorsAreRefused) {
  const auto bytes = encode({.ticket = 1, .body = example_run()});
  ASSERT_EQ("ok", reason_of(bytes));
  constexpr std::size_t kTensor = 56;
  EXPECT_EQ("bad_message", reason_of(with<std::uint32_t>(bytes, 48, 17)));     // count
  EXPECT_EQ("bad_message", reason_of(with<std::uint32_t>(bytes, 48, 1)));      // bytes left over
  EXPECT_EQ("bad_message", reason_of(with<std::uint8_t>(bytes, kTensor, 0)));  // datatype
  EXPECT_EQ("bad_message", reason_of(with<std::uint8_t>(bytes, kTensor, 15)));
  EXPECT_EQ("bad_message", reason_of(with<std::uint8_t>(bytes, kTensor + 1, 9)));  // rank
  EXPECT_EQ("bad_message", reason_of(with<std::uint8_t>(bytes, kTensor + 1, 1)));  // a dim left over
  EXPECT_EQ("bad_message", reason_of(with<std::uint64_t>(bytes, kTensor + 8, 1ULL << 63U)));
  EXPECT_EQ("bad_message", reason_of(with<std::int64_t>(bytes, kTensor + 24, -1)));
  EXPECT_EQ("bad_message", reason_of(with(bytes, kTensor + 24, std::numeric_limits<std::int64_t>::max())));
}

TEST(Messages, WithAnUnknownErrorKindOrNegativeTimeAreRefused) {
  const auto error = encode({.ticket = 1, .body = Error{.text = "x"}});
  EXPECT_EQ("bad_message", reason_of(with<std::uint8_t>(error, 24, 0)));
  EXPECT_EQ("bad_message", reason_of(with<std::uint8_t>(error, 24, 7)));
  const auto done = encode({.ticket = 1, .body = Done{}});
  EXPECT_EQ("bad_message", reason_of(with<std::int64_t>(done, 48, -1)));
}

TEST(Messages, CutATextThatIsTooLongAndRefuseOneThatClaimsToBe) {
  const auto bytes = encode({.ticket = 0, .body = Failed{.reason = "r", .text = std::string(5000, 'x')}});
  const auto back = decode(bytes);
  EXPECT_EQ(kMaxText, std::get<Failed>(back->body).text.size());
  EXPECT_EQ("bad_message", reason_of(with<std::uint32_t>(bytes, 24, kMaxText + 1)));
}

TEST(Messages, CutAnywhereAreRefused) {
  for (const Message& message : example_messages()) {
    const auto bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_EQ("bad_message", reason_of(ByteView(bytes).first(size))) << message_name(message.body);
    }
  }
}

// Whatever decode accepts, encode writes back byte for byte: there is one form of each message, and
// nothing that was read differs from what was checked.
TEST(Messages, MutatedAtRandomAreRefusedOrReadExactly) {
  Random random(20240607);
  const auto examples = example_messages();
  std::size_t accepted = 0;
  for (int round = 0; round < 100'000; ++round) {
    auto bytes = encode(examples.at(random.below(examples.size())));
    for (auto flips = random.between(1, 4); flips > 0; --flips) {
      bytes.at(random.below(bytes.size())) = static_cast<std::byte>(random.below(256));
    }
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 1));
    if (random.below(8) == 0) bytes.resize(bytes.size() + random.below(64));
    const auto message = decode(bytes);
    if (!message.is_ok()) continue;
    ++accepted;
    ASSERT_EQ(bytes, encode(*message)) << message_name(message->body);
  }
  EXPECT_GT(accepted, 1000U);  // or nothing was tried beyond the header
}

TEST(Messages, OfRandomBytesBehindAGoodHeaderDoNotCrash) {
  Random random(7);
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = encode({.ticket = 0, .body = Stop{}});
    bytes.resize(24 + random.below(400));
    std::generate(bytes.begin() + 24, bytes.end(), [&] { return static_cast<std::byte>(random.below(4)); });
    bytes = with(std::move(bytes), 6, static_cast<std::uint16_t>(random.between(1, 15)));
    const auto size = static_cast<std::uint32_t>(bytes.size());
    bytes = with(std::move(bytes), 8, size);
    const auto message = decode(bytes);
    if (message.is_ok()) {
      ASSERT_EQ(bytes, encode(*message));
    }
  }
}

}  // namespace
}  // namespace tonnage::wire
