// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on Asio, Beast's parser fed by hand so that every body byte is charged before it is read.
//
// Promises:
//  1. Bounded before allocation: headers 16 KiB, body Service::max_body(), 65,536 chunks; timeouts:
//     header 10 s, body stall 30 s, keep-alive 75 s.
//  2. Head and body of a reply leave in one write; TCP_NODELAY is set.
//  3. A client that leaves cancels its call at once.
//  4. Health and metadata are answered without a place in any queue.
// Threads: the loop's. Owns: sockets. Fails with: unavailable/port_in_use (the flag is named by the caller).
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "api/service.h"
#include "base/status.h"
#include "telemetry/log.h"

namespace tonnage::http {

struct HttpOptions {
  std::string host = "0.0.0.0";
  std::uint16_t port = 8000;   // 0: any free one
  bool v2 = true;              // /v2…, and /v1/tonnage/status
  bool sagemaker = false;      // /ping, /invocations
  bool metrics = false;        // /metrics
  int overload_status = 503;   // or 429
  Duration header_timeout = seconds(10);
  Duration body_stall_timeout = seconds(30);
  Duration keep_alive_timeout = seconds(75);
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io, const HttpOptions& options,
                                                    api::Service& service, telemetry::Log& log);
  ~HttpServer();
  std::uint16_t port() const;
  // Stops accepting and closes idle connections; connections in a call go on until it is answered.
  void drain();
  std::size_t connections() const;

 private:
  struct State;
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace tonnage::http
