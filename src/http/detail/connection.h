// SPDX-License-Identifier: Apache-2.0
// Connection: one client; a state machine of completion handlers, one phase at a time:
//
//   head ─→ (continue) ─→ body ─→ calling ─→ writing ─→ head …
//     └────→ discard ───────────────────────────┘  └─→ linger ─→ closed
//
// Invariants: at most one read and one write are in flight; a read is kept in flight while a call
// waits, so that a client that leaves is noticed; one reply per request.
// Threads: the loop. Owns: the socket, the body's charge, the reply's envelope.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/service.h"
#include "http/detail/body.h"
#include "http/detail/head_parser.h"
#include "http/detail/input_buffer.h"
#include "http/detail/reply.h"
#include "http/detail/target.h"
#include "http/server.h"

namespace tonnage::http {

// The executor by its concrete type: the type-erased one costs a tenth of the throughput.
using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

class Connection;

// What a connection needs from the server; outlives it or calls abandon().
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual const HttpOptions& options() const = 0;
  virtual api::Service& service() = 0;
  virtual bool is_draining() const = 0;
  virtual void on_reply(int status) = 0;
  virtual void on_closed(Connection& connection) = 0;
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, ConnectionOwner& owner);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  // Closes when nothing is in flight; otherwise, and where nothing was asked yet, the next reply is the last.
  void drain();
  bool is_idle() const { return phase_ == Phase::kHead && !head_started_ && in_.is_empty(); }
  // The owner goes away: closes at once, cancels the call.
  void abandon();
  void check_deadline(TimePoint now);

 private:
  enum class Phase : std::uint8_t { kHead, kContinue, kBody, kDiscard, kCalling, kWriting, kLinger, kClosed };

  // connection.cc: reading, phases, the end.
  void read_more();
  void on_read(std::size_t bytes, bool failed);
  void advance();
  void close();
  void arm(Duration timeout);
  void on_timeout();
  void refuse_stalled_body();

  // connection_request.cc: from a head to a call.
  bool read_head();
  void begin_request();
  void begin_body();
  bool read_body();
  void watch_progress();
  bool read_discarded();
  void answer_unread(OutgoingReply reply);
  void call_service();
  void call_admin();
  void on_answer(std::uint64_t request, Result<api::Reply> answer);

  // connection_reply.cc: writing.
  void send(OutgoingReply reply);
  void send_last(OutgoingReply reply);
  void send_continue();
  void write_some();
  void on_written(std::size_t bytes, bool failed);
  void finish_reply();
  void linger();

  const HttpOptions& options() const { return owner_->options(); }

  Socket socket_;
  ConnectionOwner* owner_;  // null once closed
  Phase phase_ = Phase::kHead;
  TimePoint deadline_ = kNever;

  InputBuffer in_;
  bool reading_ = false;
  bool reading_body_ = false;    // that read goes straight into body_
  bool body_timed_out_ = false;  // its read was cancelled; the refusal follows when it has ended
  bool peer_is_done_ = false;

  HeadParser parser_;
  bool head_started_ = false;
  Target target_;
  Body body_;
  std::uint64_t progress_mark_ = 0;
  std::uint64_t discard_left_ = 0;
  std::optional<OutgoingReply> after_discard_;

  std::uint64_t request_ = 0;  // counts requests; tells a late answer from the current one
  api::CallId call_;

  OutgoingReply reply_;
  std::string head_out_;
  std::size_t written_ = 0;
  bool head_only_ = false;
  bool keep_alive_ = true;
};

}  // namespace tonnage::http
