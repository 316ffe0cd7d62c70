// SPDX-License-Identifier: Apache-2.0
// For the tests of this room: a server on port 0 with a fake service, and checks that hold after each.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "http/server.h"
#include "testkit/fake_service.h"
#include "testkit/loopback_client.h"

namespace tonnage::http {

class HttpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.host = "127.0.0.1";
    options_.port = 0;
    options_.sagemaker = true;
    options_.metrics = true;
  }
  // At rest nothing is charged, and no connection is left behind.
  void TearDown() override {
    server_.reset();
    io_.restart();
    io_.poll();
    EXPECT_EQ(ingress_.used(), Bytes());
  }
  void serve() {
    auto listening = HttpServer::listen(io_, options_, service_, *log_);
    ASSERT_TRUE(listening.is_ok()) << listening.status().to_string();
    server_ = std::move(listening).value();
  }
  testkit::LoopbackClient connect() { return {io_, server_->port()}; }

  static std::string post(std::string_view path, std::string_view body, std::string_view headers = "") {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  static std::string get(std::string_view path, std::string_view headers = "") {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n";
  }
  static std::string body_of(const std::string& reply) {
    const auto end = reply.find("\r\n\r\n");
    return end == std::string::npos ? "" : reply.substr(end + 4);
  }
  static int status_of(const std::string& reply) {
    return reply.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(reply.substr(9, 3)) : 0;
  }
  static bool has_header(const std::string& reply, std::string_view line) {
    return reply.find("\r\n" + std::string(line) + "\r\n") < reply.find("\r\n\r\n") + 2;
  }

  boost::asio::io_context io_{1};
  memory::Budget budget_{"host", mib(64)};
  memory::Account& ingress_ = budget_.root().child("ingress", mib(4));
  testkit::FakeService service_{ingress_};
  std::unique_ptr<telemetry::Log> log_ = telemetry::make_null_log();
  HttpOptions options_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace tonnage::http
