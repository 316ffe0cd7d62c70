// SPDX-License-Identifier: Apache-2.0
// What a hostile or broken client gets. HttpTest checks after each test that nothing stays charged.
#include <boost/asio/steady_timer.hpp>

#include "testkit/http_fixture.h"

namespace tonnage::http {
namespace {

using HttpLimits = HttpTest;
constexpr std::string_view kInfer = "/v2/models/known/infer";

std::string chunked_head(std::string_view path = kInfer) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
}

TEST_F(HttpLimits, RefusesAMillionOneByteChunks) {
  serve();
  for (const std::string_view path : {kInfer, std::string_view("/invocations")}) {
    auto client = connect();
    client.send(chunked_head(path));
    std::string block;
    for (int i = 0; i < 1000; ++i) block += "1\r\nx\r\n";
    for (int i = 0; i < 1000; ++i) client.send(block);
    const std::string reply = client.next_reply();
    EXPECT_EQ(status_of(reply), 413) << reply;
    EXPECT_TRUE(has_header(reply, "X-Tonnage-Reason: too_many_chunks")) << reply;
    client.leave();
  }
  EXPECT_LE(ingress_.peak(), kib(256));
  EXPECT_EQ(service_.infer_calls, 0);
}

TEST_F(HttpLimits, TakesAsManyChunksAsAreAllowed) {
  serve();
  auto client = connect();
  std::string body = chunked_head();
  for (int i = 0; i < 65'536; ++i) body += "1\r\nx\r\n";
  EXPECT_EQ(body_of(client.exchange(body + "0\r\n\r\n")), std::string(65'536, 'x'));
}

TEST_F(HttpLimits, TakesAChunkedBodyAByteAtATime) {
  serve();
  auto client = connect();
  const std::string request =
      chunked_head() + "3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
  for (const char c : request) {
    client.send(std::string(1, c));
    io_.poll();
  }
  EXPECT_EQ(body_of(client.next_reply()), "abc0123456789");
  EXPECT_EQ(status_of(client.exchange(get("/ping"))), 200);
}

TEST_F(HttpLimits, RefusesABodyThatIsDeclaredTooLargeBeforeReadingIt) {
  serve();
  auto client = connect();
  for (const char* length : {"1048577", "99999999999", "18446744073709551615"}) {
    auto one = connect();
    one.send("POST /v2/models/known/infer HTTP/1.1\r\nContent-Length: " + std::string(length) + "\r\n\r\n");
    const std::string reply = one.next_reply();
    EXPECT_EQ(status_of(reply), 413) << reply;
    EXPECT_TRUE(has_header(reply, "X-Tonnage-Reason: body")) << reply;
    EXPECT_TRUE(has_header(reply, "Connection: close")) << reply;
  }
  EXPECT_EQ(ingress_.peak(), Bytes());
}

TEST_F(HttpLimits, RefusesAChunkThatIsDeclaredTooLarge) {
  serve();
  for (const char* size : {"100001", "fffffffffffffff"}) {
    auto client = connect();
    EXPECT_EQ(status_of(client.exchange(chunked_head() + size + "\r\n")), 413) << size;
  }
}

TEST_F(HttpLimits, RefusesChunksThatSumUpToTooMuch) {
  serve();
  auto client = connect();
  client.send(chunked_head());
  for (int i = 0; i < 20; ++i) client.send("10000\r\n" + std::string(0x10000, 'x') + "\r\n");
  EXPECT_EQ(status_of(client.next_reply()), 413);
  EXPECT_LE(ingress_.peak(), mib(1) + kib(1));
}

TEST_F(HttpLimits, RefusesWhatHasNoRoomNowAndTellsWhenToComeBack) {
  auto taken = ingress_.charge(mib(4) - kib(8));
  ASSERT_TRUE(taken.is_ok());
  serve();
  auto client = connect();
  const std::string fixed = client.exchange(post(kInfer, std::string(10'000, 'x')));
  EXPECT_EQ(status_of(fixed), 503) << fixed;
  EXPECT_TRUE(has_header(fixed, "X-Tonnage-Reason: ingress_full")) << fixed;
  EXPECT_TRUE(has_header(fixed, "Retry-After: 1")) << fixed;
  // The connection goes on, and a body that fits is taken.
  EXPECT_EQ(status_of(client.exchange(post(kInfer, "small"))), 200);
  const std::string chunked =
      client.exchange(chunked_head() + "2710\r\n" + std::string(10'000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(chunked), 503) << chunked;
}

TEST_F(HttpLimits, RefusesHeadersThatAreTooLargeHoweverTheyAreCut) {
  serve();
  const std::string big = "GET /ping HTTP/1.1\r\nX-Big: " + std::string(20'000, 'x') + "\r\n\r\n";
  std::string many = "GET /ping HTTP/1.1\r\n";
  for (int i = 0; i < 2'000; ++i) many += "X-" + std::to_string(i) + ": v\r\n";
  const std::string target = "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n";
  for (const std::string& request : {big, many + "\r\n", target}) {
    auto client = connect();
    const std::string reply = client.exchange(request);
    EXPECT_EQ(status_of(reply), 431) << reply;
    EXPECT_TRUE(has_header(reply, "X-Tonnage-Reason: headers_too_large")) << reply;
  }
  auto slow = connect();
  for (std::size_t i = 0; i < many.size(); i += 100) {
    slow.send(many.substr(i, 100));
    io_.poll();
  }
  EXPECT_EQ(status_of(slow.next_reply()), 431);
}

TEST_F(HttpLimits, TakesHeadersJustBelowTheLimit) {
  serve();
  auto client = connect();
  EXPECT_EQ(
      status_of(client.exchange("GET /ping HTTP/1.1\r\nX-Big: " + std::string(16'000, 'x') + "\r\n\r\n")),
      200);
}

TEST_F(HttpLimits, EndlessEmptyLinesAreAHeadThatIsTooLarge) {
  serve();
  auto client = connect();
  std::string lines;
  for (int i = 0; i < 10'000; ++i) lines += "\r\n";
  EXPECT_EQ(status_of(client.exchange(lines)), 431);
}

TEST_F(HttpLimits, RefusesWhatIsNotHttp) {
  serve();
  for (const char* text :
       {"hello\r\n\r\n", "GET /ping\r\n\r\n", "GET /ping HTTP/2.0\r\n\r\n", "GET ping HTTP/1.1\r\n\r\n",
        "GET /ping HTTP/1.1\r\nNo colon\r\n\r\n", "GET /ping HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /ping HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST /ping HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /invocations HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /v2/models/%zz HTTP/1.1\r\n\r\n", "GET /v2/models/%2 HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n"}) {
    auto client = connect();
    const std::string reply = client.exchange(text);
    EXPECT_EQ(status_of(reply), 400) << text << reply;
    EXPECT_EQ(body_of(reply).rfind("{\"error\":\"", 0), 0U) << reply;
  }
}

TEST_F(HttpLimits, RefusesBrokenChunks) {
  serve();
  for (const char* body : {"zz\r\n", "\r\n", ";\r\n", "1\nx\r\n", "1\r\nxy\r\n", "1\r\nx\n", "-1\r\n", "1\rx",
                           "1234567890abcdef0\r\n"}) {
    auto client = connect();
    const std::string reply = client.exchange(chunked_head() + body);
    EXPECT_EQ(status_of(reply), 400) << body << reply;
    EXPECT_TRUE(has_header(reply, "X-Tonnage-Reason: bad_chunk")) << reply;
  }
}

TEST_F(HttpLimits, RefusesUnknownPathsMethodsAndCodingsButKeepsTheConnection) {
  serve();
  auto client = connect();
  EXPECT_EQ(status_of(client.exchange(get("/v2/unknown"))), 404);
  EXPECT_EQ(status_of(client.exchange(get("/v2/models/known/versions/1/other"))), 404);
  EXPECT_EQ(status_of(client.exchange(post("/nowhere", "some body"))), 404);
  const std::string wrong_verb = client.exchange(get(kInfer));
  EXPECT_EQ(status_of(wrong_verb), 405);
  EXPECT_TRUE(has_header(wrong_verb, "Allow: POST")) << wrong_verb;
  EXPECT_TRUE(has_header(client.exchange(post("/ping", "x")), "Allow: GET, HEAD"));
  const std::string encoded = client.exchange(post(kInfer, "x", "Content-Encoding: br\r\n"));
  EXPECT_EQ(status_of(encoded), 415);
  EXPECT_TRUE(has_header(encoded, "Accept-Encoding: identity")) << encoded;
  EXPECT_EQ(status_of(client.exchange(get("/ping", "Expect: gifts\r\n"))), 417);
  EXPECT_EQ(status_of(client.exchange(get("/ping"))), 200);
}

TEST_F(HttpLimits, ServesOnEachPortOnlyWhatBelongsThere) {
  options_.v2 = false;
  options_.metrics = false;
  serve();
  auto client = connect();
  EXPECT_EQ(status_of(client.exchange(get("/ping"))), 200);
  for (const char* path : {"/v2/health/live", "/v1/tonnage/status", "/metrics"}) {
    EXPECT_EQ(status_of(client.exchange(get(path))), 404) << path;
  }
}

TEST_F(HttpLimits, CutsOffAHeadThatNeverEnds) {
  options_.header_timeout = milliseconds(20);
  serve();
  auto client = connect();
  client.send("GET /ping HTT");
  const std::string reply = client.next_reply();
  EXPECT_EQ(status_of(reply), 408) << reply;
  EXPECT_TRUE(has_header(reply, "X-Tonnage-Reason: header_timeout")) << reply;
  client.await_close();
}

TEST_F(HttpLimits, CutsOffABodyThatStopsComing) {
  options_.body_stall_timeout = milliseconds(20);
  serve();
  auto client = connect();
  client.send("POST /v2/models/known/infer HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc");
  const std::string reply = client.next_reply();
  EXPECT_EQ(status_of(reply), 408) << reply;
  EXPECT_TRUE(has_header(reply, "X-Tonnage-Reason: body_stalled")) << reply;
  EXPECT_EQ(ingress_.used(), Bytes());
}

TEST_F(HttpLimits, CutsOffABodyThatTrickles) {
  options_.body_stall_timeout = milliseconds(40);
  serve();
  auto client = connect();
  client.send("POST /v2/models/known/infer HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  // A byte each time the loop turns: never idle, never far.
  while (client.received().empty()) {
    client.send("x");
    io_.run_one();
  }
  EXPECT_EQ(status_of(client.next_reply()), 408);
}

TEST_F(HttpLimits, ClosesAConnectionThatStaysIdle) {
  options_.keep_alive_timeout = milliseconds(20);
  serve();
  auto client = connect();
  EXPECT_EQ(status_of(client.exchange(get("/ping"))), 200);
  client.await_close();
  EXPECT_EQ(client.received(), "");
}

TEST_F(HttpLimits, ACallMayTakeLongerThanEveryTimeout) {
  options_.keep_alive_timeout = options_.header_timeout = options_.body_stall_timeout = milliseconds(10);
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "a"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  bool later = false;
  boost::asio::steady_timer timer(io_, milliseconds(50));
  timer.async_wait([&](const boost::system::error_code&) { later = true; });
  client.run_until([&] { return later; });
  service_.answer_oldest();
  EXPECT_EQ(body_of(client.next_reply()), "a");
}

TEST_F(HttpLimits, AClientThatLeavesInTheMiddleOfABodyGivesItsMemoryBack) {
  serve();
  auto client = connect();
  client.send("POST /v2/models/known/infer HTTP/1.1\r\nContent-Length: 500000\r\n\r\n" +
              std::string(1000, 'x'));
  client.run_until([&] { return ingress_.used() > Bytes(); });
  client.leave();
  client.run_until([&] { return server_->busy_connections() == 0; });
  EXPECT_EQ(ingress_.used(), Bytes());
  EXPECT_EQ(service_.infer_calls, 0);
}

TEST_F(HttpLimits, TheServerMayGoAwayInTheMiddleOfABody) {
  serve();
  auto client = connect();
  client.send("POST /v2/models/known/infer HTTP/1.1\r\nContent-Length: 500000\r\n\r\n" +
              std::string(1000, 'x'));
  client.run_until([&] { return ingress_.used() > Bytes(); });
  server_.reset();
  EXPECT_EQ(ingress_.used(), Bytes());
}

TEST_F(HttpLimits, AboveTheConnectionLimitANewOneIsClosed) {
  options_.max_connections = 1;
  serve();
  auto first = connect();
  EXPECT_EQ(status_of(first.exchange(get("/ping"))), 200);
  auto second = connect();
  second.await_close();
  EXPECT_EQ(status_of(first.exchange(get("/ping"))), 200);
}

}  // namespace
}  // namespace tonnage::http
