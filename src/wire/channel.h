// SPDX-License-Identifier: Apache-2.0
// Channel: one end of the SEQPACKET socketpair, with file descriptors by SCM_RIGHTS.
//
// Promises: a message arrives whole or not at all; received fds are close-on-exec and owned; more
// than kMaxFds, a truncated packet or a closed peer is a Status.
// Threads: one at a time. Fails with: unavailable/peer_closed, unavailable/would_block,
// invalid_argument/bad_message or wrong_version; make_pair: unavailable/no_socket.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "wire/messages.h"

namespace tonnage::wire {

inline constexpr std::size_t kMaxFds = 8;

struct Packet {
  Message message;
  std::vector<UniqueFd> fds;
};

class Channel {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}
  // Both ends close-on-exec; [0] non-blocking for the front, [1] blocking for the worker.
  static Result<std::pair<Channel, UniqueFd>> make_pair();

  int fd() const { return fd_.get(); }
  Status send(const Message& message, std::span<const int> fds = {});
  Result<Packet> receive();

 private:
  UniqueFd fd_;
};

}  // namespace tonnage::wire
