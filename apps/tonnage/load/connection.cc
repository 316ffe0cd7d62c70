// SPDX-License-Identifier: Apache-2.0
#include "load/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tonnage::load {
namespace {

Status lost(std::string why) { return {Code::kUnavailable, "connection_lost", std::move(why)}; }
bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

void Connection::begin(std::uint64_t tag, std::string request, bool keep_body) {
  TONNAGE_CHECK(!busy_, "a second request was put on a busy connection");
  tag_ = tag;
  request_ = std::move(request);
  sent_ = 0;
  busy_ = true;
  parser_.reset(keep_body);
}

Status Connection::write_some() {
  while (wants_write()) {
    const ssize_t wrote = ::send(fd(), request_.data() + sent_, request_.size() - sent_, MSG_NOSIGNAL);
    if (wrote < 0 && would_block(errno)) return Status();
    if (wrote < 0 && errno == ECONNREFUSED)
      return Status(Code::kUnavailable, "connect_failed", std::strerror(errno));
    if (wrote < 0) return lost(std::strerror(errno));
    sent_ += static_cast<std::size_t>(wrote);
  }
  return Status();
}

Result<std::optional<HttpReply>> Connection::read_some() {
  std::array<char, 64 << 10> buffer;  // NOLINT(*-member-init): filled by recv
  for (;;) {
    const ssize_t got = ::recv(fd(), buffer.data(), buffer.size(), 0);
    if (got < 0 && would_block(errno)) return std::optional<HttpReply>();
    if (got < 0) return lost(std::strerror(errno));
    if (got == 0) return lost(parser_.has_begun() ? "closed inside a reply" : "closed without a reply");
    if (!busy_) return lost("the server spoke without being asked");
    const auto size = static_cast<std::size_t>(got);
    TONNAGE_ASSIGN(const bool complete, parser_.feed(std::string_view(buffer.data(), size)));
    if (complete) return std::optional<HttpReply>(parser_.take());
    if (size < buffer.size()) return std::optional<HttpReply>();
  }
}

}  // namespace tonnage::load
