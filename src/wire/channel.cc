// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace tonnage::wire {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(kMaxFds * sizeof(int));

Status from_errno(std::string_view call) {
  if (errno == EAGAIN) return {Code::kUnavailable, "would_block", ""};
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
    return {Code::kUnavailable, "peer_closed", ""};
  }
  return {Code::kUnavailable, "peer_closed", fmt::format("{}: {}", call, std::strerror(errno))};
}

// Owns every fd of the packet before anything is judged, so that a refused packet leaks none.
std::vector<UniqueFd> take_fds(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

// The first receive after the peer left with unread messages reports ECONNRESET, once; what the peer
// had sent before is still to be read.
bool is_worth_retrying() { return errno == EINTR || errno == ECONNRESET; }

}  // namespace

Result<std::pair<Channel, UniqueFd>> Channel::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Status(Code::kUnavailable, "no_socket", fmt::format("socketpair: {}", std::strerror(errno)));
  }
  UniqueFd front(ends[0]);
  UniqueFd worker(ends[1]);
  if (::fcntl(front.get(), F_SETFL, O_RDWR | O_NONBLOCK) != 0) {
    return Status(Code::kUnavailable, "no_socket", fmt::format("fcntl: {}", std::strerror(errno)));
  }
  return std::pair(Channel(std::move(front)), std::move(worker));
}

Status Channel::send(const Message& message, std::span<const int> fds) {
  TONNAGE_CHECK(fds.size() <= kMaxFds, "more descriptors than a packet holds");
  std::array<std::byte, kMaxMessageBytes> bytes;  // not initialised: on the path of every batch
  iovec part{bytes.data(), encode_into(message, bytes)};
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(fd_.get(), &header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return from_errno("sendmsg");
  }
  return Status::ok();
}

Result<Packet> Channel::receive() {
  std::array<std::byte, kMaxMessageBytes> bytes;  // not initialised: on the path of every batch
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control;
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  ssize_t size = -1;
  do {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    size = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && is_worth_retrying());
  if (size < 0) return from_errno("recvmsg");
  Packet packet{.message = {}, .fds = take_fds(header)};
  if (size == 0) return Status(Code::kUnavailable, "peer_closed", "");
  if ((header.msg_flags & MSG_TRUNC) != 0) return invalid("bad_message", "the packet exceeds 8192 bytes");
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return invalid("bad_message", fmt::format("the packet carries more than {} descriptors", kMaxFds));
  }
  TONNAGE_ASSIGN(packet.message, decode(ByteView(bytes).first(static_cast<std::size_t>(size))));
  return packet;
}

}  // namespace tonnage::wire
