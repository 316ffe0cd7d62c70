// SPDX-License-Identifier: Apache-2.0
#include "http/detail/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <utility>

namespace tonnage::http {
namespace {

using boost::system::error_code;

constexpr std::size_t kBodyReadBytes = 64 * 1024;

}  // namespace

Connection::Connection(Socket socket, ConnectionOwner& owner)
    : socket_(std::move(socket)), owner_(&owner), body_(owner.service()) {}

void Connection::start() {
  arm(options().keep_alive_timeout);
  read_more();
}

void Connection::drain() {
  // One that has not asked anything yet is about to: a probe that came this moment gets its answer.
  if (is_idle() && request_ > 0) close();
}

void Connection::abandon() { close(); }

void Connection::arm(Duration timeout) { deadline_ = std::chrono::steady_clock::now() + timeout; }

void Connection::check_deadline(TimePoint now) {
  if (now >= deadline_) on_timeout();
}

void Connection::on_timeout() {
  deadline_ = kNever;
  error_code ignored;
  switch (phase_) {
    case Phase::kHead:
      if (!head_started_) return close();  // idle: nobody waits for a reply
      return send_last(error_reply(408, "header_timeout", "the request line and headers took too long"));
    case Phase::kBody:
    case Phase::kDiscard:
      if (!reading_body_) return refuse_stalled_body();
      // The read in flight writes into the body, which must stay until it has ended.
      body_timed_out_ = true;
      socket_.cancel(ignored);
      return;
    case Phase::kContinue:
    case Phase::kWriting:
    case Phase::kLinger: return close();
    case Phase::kCalling:
    case Phase::kClosed: return;
  }
}

void Connection::refuse_stalled_body() {
  send_last(error_reply(408, "body_stalled", "the body arrives too slowly"));
}

void Connection::read_more() {
  if (reading_ || peer_is_done_ || phase_ == Phase::kClosed) return;
  reading_body_ = phase_ == Phase::kBody && in_.is_empty();
  std::span<char> room = reading_body_ ? body_.room(kBodyReadBytes) : std::span<char>();
  if (room.empty()) {
    reading_body_ = false;
    // A client that pipelines more than the buffer holds waits; its leaving is then seen later.
    if (in_.is_full()) return;
    room = in_.prepare();
  }
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            self->on_read(bytes, static_cast<bool>(error));
                          });
}

void Connection::on_read(std::size_t bytes, bool failed) {
  reading_ = false;
  if (reading_body_) {
    body_.commit(bytes);
  } else {
    in_.commit(bytes);
  }
  reading_body_ = false;
  if (phase_ == Phase::kClosed) return body_.clear();
  if (std::exchange(body_timed_out_, false)) return refuse_stalled_body();
  if (failed) {
    peer_is_done_ = true;
    // A reply on its way may still reach a client that closed only its sending half.
    if (phase_ != Phase::kWriting && phase_ != Phase::kContinue) close();
    return;
  }
  advance();
}

// Goes as far as the bytes at hand allow, then asks for more. A loop, so that a thousand pipelined
// requests do not nest.
void Connection::advance() {
  bool progressed = true;
  while (progressed) {
    switch (phase_) {
      case Phase::kHead: progressed = read_head(); break;
      case Phase::kBody: progressed = read_body(); break;
      case Phase::kDiscard: progressed = read_discarded(); break;
      case Phase::kLinger:
        in_.consume(in_.view().size());
        progressed = false;
        break;
      case Phase::kContinue:
      case Phase::kCalling:
      case Phase::kWriting:
      case Phase::kClosed: progressed = false; break;
    }
  }
  read_more();
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();  // the owner lets go below
  const bool was_calling = phase_ == Phase::kCalling;
  phase_ = Phase::kClosed;
  deadline_ = kNever;
  error_code ignored;
  socket_.close(ignored);
  // The amounts go back now; a buffer that asio may still hold follows with its handler.
  body_.release_charge();
  reply_.envelope.release();
  if (!reading_body_) body_.clear();
  ConnectionOwner* const owner = std::exchange(owner_, nullptr);
  if (was_calling && call_.is_valid) owner->service().cancel(call_);
  owner->on_closed(*this);
}

}  // namespace tonnage::http
