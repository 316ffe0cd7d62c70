// SPDX-License-Identifier: Apache-2.0
// From a reply to its last byte, and what comes after it.
#include <array>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "http/detail/connection.h"

namespace tonnage::http {
namespace {

using boost::system::error_code;

// How long a connection that is about to close listens on: closing while unread bytes wait would
// reset it, and the client might never see the reply.
constexpr Duration kLingerTime = seconds(5);
constexpr std::string_view kContinueText = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

void Connection::send_last(OutgoingReply reply) {
  keep_alive_ = false;
  send(std::move(reply));
}

void Connection::send(OutgoingReply reply) {
  if (owner_->is_draining()) keep_alive_ = false;
  body_.clear();
  phase_ = Phase::kWriting;
  reply_ = std::move(reply);
  head_out_ = head_text(reply_, {parser_.head().version, keep_alive_});
  if (head_only_) reply_.body.clear();
  written_ = 0;
  owner_->on_reply(reply_.status);
  arm(options().body_stall_timeout);
  write_some();
}

void Connection::send_continue() {
  phase_ = Phase::kContinue;
  reply_ = OutgoingReply();
  head_out_ = kContinueText;
  written_ = 0;
  arm(options().body_stall_timeout);
  write_some();
}

void Connection::write_some() {
  std::array<boost::asio::const_buffer, 2> parts{boost::asio::buffer(head_out_),
                                                 boost::asio::buffer(reply_.body)};
  if (written_ < head_out_.size()) {
    parts[0] += written_;
  } else {
    parts[0] += head_out_.size();
    parts[1] += written_ - head_out_.size();
  }
  socket_.async_write_some(parts, [self = shared_from_this()](const error_code& error, std::size_t bytes) {
    self->on_written(bytes, static_cast<bool>(error));
  });
}

void Connection::on_written(std::size_t bytes, bool failed) {
  if (failed || phase_ == Phase::kClosed) {
    reply_ = OutgoingReply();
    return close();
  }
  written_ += bytes;
  if (written_ < head_out_.size() + reply_.body.size()) {
    arm(options().body_stall_timeout);
    return write_some();
  }
  if (phase_ == Phase::kContinue) {
    if (peer_is_done_) return close();
    phase_ = Phase::kBody;
    deadline_ = kNever;
    return advance();
  }
  finish_reply();
}

void Connection::finish_reply() {
  reply_ = OutgoingReply();  // the envelope goes back here
  if (peer_is_done_) return close();
  if (!keep_alive_ || owner_->is_draining()) return linger();
  phase_ = Phase::kHead;
  head_started_ = false;
  head_only_ = false;
  parser_.reset();
  arm(options().keep_alive_timeout);
  advance();
}

void Connection::linger() {
  error_code error;
  socket_.shutdown(boost::asio::socket_base::shutdown_send, error);
  if (error) return close();
  phase_ = Phase::kLinger;
  arm(std::min(kLingerTime, options().header_timeout));
  advance();
}

}  // namespace tonnage::http
