// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <string>

#include "testkit/example_messages.h"

namespace tonnage::wire {
namespace {

struct Ends {
  Channel front;
  Channel worker;
};

Ends make_ends() {
  auto pair = Channel::make_pair();
  return {std::move(pair->first), Channel(std::move(pair->second))};
}

std::size_t open_fds() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

void send_raw(const Channel& from, std::string_view bytes) {
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()), ::send(from.fd(), bytes.data(), bytes.size(), 0));
}

TEST(Channel, CarriesEveryMessageBothWays) {
  auto [front, worker] = make_ends();
  for (const Message& message : testkit::example_messages()) {
    ASSERT_TRUE(front.send(message).is_ok());
    const auto arrived = worker.receive();
    ASSERT_TRUE(arrived.is_ok());
    ASSERT_TRUE(worker.send(arrived->message).is_ok());
    EXPECT_EQ(encode(message), encode(front.receive()->message));
  }
}

TEST(Channel, TellsTheFrontThatNothingIsThere) {
  auto [front, worker] = make_ends();
  EXPECT_EQ("would_block", front.receive().status().reason());
}

TEST(Channel, TellsTheFrontThatThePeerDoesNotRead) {
  auto [front, worker] = make_ends();
  Status status;
  for (int sent = 0; sent < 100'000 && status.is_ok(); ++sent)
    status = front.send({.ticket = 0, .body = Stat{}});
  EXPECT_EQ("would_block", status.reason());
}

TEST(Channel, CarriesDescriptorsThatCloseOnExec) {
  auto [front, worker] = make_ends();
  const std::array<int, 2> fds = {front.fd(), worker.fd()};
  ASSERT_TRUE(front.send({.ticket = 0, .body = Region{.output_bytes = 64}}, fds).is_ok());
  const auto packet = worker.receive();
  ASSERT_EQ(2U, packet->fds.size());
  for (const UniqueFd& fd : packet->fds) EXPECT_EQ(FD_CLOEXEC, ::fcntl(fd.get(), F_GETFD));
}

TEST(Channel, RefusesMoreThanEightDescriptorsAndKeepsNone) {
  auto [front, worker] = make_ends();
  const std::size_t before = open_fds();
  std::array<int, kMaxFds + 1> fds{};
  fds.fill(worker.fd());
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof fds)> control{};
  auto bytes = encode({.ticket = 0, .body = Stop{}});
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  *rights = {.cmsg_len = CMSG_LEN(sizeof fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  std::copy(fds.begin(), fds.end(), pointer_cast<int>(CMSG_DATA(rights)));
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()), ::sendmsg(worker.fd(), &header, 0));

  EXPECT_EQ("bad_message", front.receive().status().reason());
  EXPECT_EQ(before, open_fds());
}

TEST(Channel, ClosesTheDescriptorsOfAMessageItRefuses) {
  auto [front, worker] = make_ends();
  const std::size_t before = open_fds();
  for (int i = 0; i < 20; ++i) {
    const std::array<int, 1> fds = {worker.fd()};
    ASSERT_TRUE(worker.send({.ticket = 0, .body = Stop{}}, fds).is_ok());
    send_raw(worker, "half a mess");
    EXPECT_TRUE(front.receive().is_ok());
    EXPECT_EQ("bad_message", front.receive().status().reason());
  }
  EXPECT_EQ(before, open_fds());
}

TEST(Channel, RefusesAPacketLargerThanAMessage) {
  auto [front, worker] = make_ends();
  send_raw(worker, std::string(kMaxMessageBytes + 1, 'x'));
  EXPECT_EQ("bad_message", front.receive().status().reason());
  EXPECT_EQ("would_block", front.receive().status().reason());
}

TEST(Channel, ReadsWhatThePeerSaidBeforeItLeft) {
  auto [front, worker] = make_ends();
  ASSERT_TRUE(front.send({.ticket = 0, .body = Stat{}}).is_ok());  // stays unread: the peer's end resets
  ASSERT_TRUE(worker.send({.ticket = 0, .body = Failed{.reason = "bad_model_file", .text = ""}}).is_ok());
  { const Channel gone = std::move(worker); }
  const auto last = front.receive();
  ASSERT_TRUE(last.is_ok());
  EXPECT_EQ("failed", message_name(last->message.body));
  EXPECT_EQ("peer_closed", front.receive().status().reason());
  EXPECT_EQ("peer_closed", front.send({.ticket = 0, .body = Stop{}}).reason());
}

}  // namespace
}  // namespace tonnage::wire
