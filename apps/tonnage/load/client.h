// SPDX-License-Identifier: Apache-2.0
// Client: many keep-alive connections to one HTTP server on one thread, one request at a time on each.
//
// Promises:
//  1. Every request taken by send() is told to the sink exactly once: a reply, or why there is none.
//  2. It costs little: one write, one read and a share of one epoll_wait per request, no allocation
//     but the request's own text.
//  3. wait() returns at `until` or earlier, to a microsecond or so (timerfd).
// Threads: one. Owns: sockets, the epoll set and the timer.
// Fails with: unavailable/connect_failed, invalid_argument/bad_url.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function.h"
#include "base/status.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "load/reply_parser.h"

namespace tonnage::load {

struct Endpoint {
  std::string host;  // as written, for the Host header
  std::string path;  // prefix before the routes, without a closing slash
  sockaddr_storage address{};
  socklen_t address_size = 0;
};
// "http://host:port[/prefix]". Error: bad_url, connect_failed when the name is unknown.
Result<Endpoint> parse_endpoint(std::string_view url);

TimePoint now();  // the one real clock of the generator

class Connection;

class Client {
 public:
  using Sink = UniqueFunction<void(std::uint64_t tag, Result<HttpReply> reply)>;

  static Result<std::unique_ptr<Client>> make(Endpoint endpoint, std::uint32_t max_connections, Sink sink);
  Client(Endpoint endpoint, std::uint32_t max_connections, Sink sink, UniqueFd epoll, UniqueFd timer);
  ~Client();

  const Endpoint& endpoint() const { return endpoint_; }
  bool has_room() const { return !idle_.empty() || open_ < max_connections_; }
  std::uint32_t open_connections() const { return open_; }
  // Sends on an idle connection or a new one; has_room() must be true.
  void send(std::uint64_t tag, std::string request, bool keep_body);
  // Handles what arrives until `until`, or returns after the first round of events.
  void wait(TimePoint until);

 private:
  std::size_t open_connection(Status& problem);
  void handle(std::size_t slot, std::uint32_t events);
  void finish(std::size_t slot, Result<HttpReply> reply, bool keep);
  void arm(TimePoint until);

  Endpoint endpoint_;
  std::uint32_t max_connections_;
  Sink sink_;
  UniqueFd epoll_;
  UniqueFd timer_;
  std::vector<std::unique_ptr<Connection>> slots_;
  std::vector<std::size_t> idle_;  // the last one used comes first: few sockets stay warm
  std::vector<std::size_t> vacant_;
  std::uint32_t open_ = 0;
};

}  // namespace tonnage::load
