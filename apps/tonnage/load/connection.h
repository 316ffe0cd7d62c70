// SPDX-License-Identifier: Apache-2.0
// Connection: one socket and the request that travels on it. Any stream socket will do; tests use a
// socketpair. Threads: one. Fails with: unavailable/connect_failed or connection_lost,
// invalid_argument/bad_reply.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"
#include "load/reply_parser.h"

namespace tonnage::load {

class Connection {
 public:
  explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  bool is_busy() const { return busy_; }
  std::uint64_t tag() const { return tag_; }
  // Bytes of the request that the kernel has not taken yet: wait for the socket to be writable.
  bool wants_write() const { return sent_ < request_.size(); }

  void begin(std::uint64_t tag, std::string request, bool keep_body);
  Status write_some();
  // The reply when it is complete; nothing while it is not.
  Result<std::optional<HttpReply>> read_some();
  void end() { busy_ = false; }

 private:
  UniqueFd socket_;
  ReplyParser parser_;
  std::string request_;
  std::size_t sent_ = 0;
  std::uint64_t tag_ = 0;
  bool busy_ = false;
};

}  // namespace tonnage::load
