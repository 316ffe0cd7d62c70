// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on Asio, Beast's parser fed by hand so that every body byte is charged before it is read.
//
// Promises:
//  1. Bounded before allocation: headers 16 KiB, body Service::max_body(), 65,536 chunks; timeouts:
//     header 10 s, body stall 30 s (a body that trickles counts as stalled), keep-alive 75 s.
//  2. Head and body of a reply leave in one write; TCP_NODELAY is set. Exactly one reply per request,
//     in the order of the requests; pipelined requests wait their turn.
//  3. A client that leaves (or shuts down its sending half) cancels its call at once.
//  4. Health and metadata are answered without a place in any queue.
//  5. Every error has a JSON body {"error": …} and its reason word in X-Tonnage-Reason.
// Threads: the loop's. Owns: sockets. Fails with: unavailable/port_in_use (the flag is named by the caller).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "api/service.h"
#include "base/status.h"
#include "base/time.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace tonnage::http {

struct HttpOptions {
  std::string host = "0.0.0.0";
  std::uint16_t port = 8000;  // 0: any free one
  bool v2 = true;             // /v2…, and /v1/tonnage/status
  bool sagemaker = false;     // /ping, /invocations
  bool metrics = false;       // /metrics
  bool admin = false;         // /v2/repository…, for peers on the loopback or with the token
  std::string admin_token;    // of "Authorization: Bearer …"; empty: the loopback only
  int overload_status = 503;  // or 429
  Duration header_timeout = seconds(10);
  Duration body_stall_timeout = seconds(30);
  Duration keep_alive_timeout = seconds(75);
  std::size_t max_connections = 8192;               // above it a new one is closed at once
  telemetry::Registry* metrics_registry = nullptr;  // connections and replies by status, when given
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io, const HttpOptions& options,
                                                    api::Service& service, telemetry::Log& log);
  struct State;
  explicit HttpServer(std::shared_ptr<State> state);  // by listen()
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  // Closes idle connections, and every other one after its reply; what was begun is finished. Goes on
  // listening: health is answered, new work is refused by the service (api::Service::is_draining).
  void drain();
  // Connections on which something was begun.
  std::size_t busy_connections() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace tonnage::http
