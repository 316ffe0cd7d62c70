// SPDX-License-Identifier: Apache-2.0
// What a well-behaved client sees.
#include "http/server.h"

#include "testkit/http_fixture.h"

namespace tonnage::http {
namespace {

using HttpServerTest = HttpTest;
constexpr std::string_view kInfer = "/v2/models/known/infer";

TEST_F(HttpServerTest, AnswersHealthAndMetadata) {
  serve();
  auto client = connect();
  EXPECT_EQ(body_of(client.exchange(get("/v2/health/live"))), R"({"live":true})");
  EXPECT_EQ(body_of(client.exchange(get("/v2/health/ready"))), R"({"ready":true})");
  EXPECT_EQ(body_of(client.exchange(get("/v2"))), R"({"name":"tonnage"})");
  EXPECT_EQ(body_of(client.exchange(get("/v2/"))), R"({"name":"tonnage"})");
  EXPECT_EQ(body_of(client.exchange(get("/v2/models"))), R"({"models":["known","loading"]})");
  EXPECT_EQ(body_of(client.exchange(get("/v2/models/known"))), R"({"name":"known","version":""})");
  EXPECT_EQ(body_of(client.exchange(get("/v2/models/known/versions/7"))),
            R"({"name":"known","version":"7"})");
  EXPECT_EQ(body_of(client.exchange(get("/v2/models/known/ready"))), R"({"name":"known","ready":true})");
  EXPECT_EQ(body_of(client.exchange(get("/v1/tonnage/status"))), R"({"status":1})");
  const std::string metrics = client.exchange(get("/metrics"));
  EXPECT_TRUE(has_header(metrics, "Content-Type: text/plain; version=0.0.4; charset=utf-8")) << metrics;
  EXPECT_EQ(body_of(metrics), "up 1\n");
}

TEST_F(HttpServerTest, PingHasAnEmptyBodyAndTellsReadiness) {
  serve();
  auto client = connect();
  EXPECT_EQ(client.exchange(get("/ping")), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  service_.ready = false;
  const std::string reply = client.exchange(get("/ping"));
  EXPECT_EQ(status_of(reply), 503);
  EXPECT_EQ(body_of(reply), "");
}

TEST_F(HttpServerTest, NotReadyIs400OnV2PathsAndKeepsTheKeyThatClientsRead) {
  service_.ready = false;
  serve();
  auto client = connect();
  const std::string server = client.exchange(get("/v2/health/ready"));
  EXPECT_EQ(status_of(server), 400);
  EXPECT_EQ(body_of(server), R"({"ready":false,"error":"loading"})");
  const std::string model = client.exchange(get("/v2/models/loading/ready"));
  EXPECT_EQ(status_of(model), 400);
  EXPECT_EQ(body_of(model), R"({"name":"loading","ready":false,"error":"still loading"})");
  EXPECT_EQ(status_of(client.exchange(get("/v2/models/absent/ready"))), 404);
  EXPECT_EQ(body_of(client.exchange(get("/v2/health/live"))), R"({"live":true})");
}

TEST_F(HttpServerTest, PassesACallOnAndItsReplyBack) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post("/v2/models/a%2Fb/versions/3/infer?trace=1", "body bytes",
                   "Content-Type: application/octet-stream\r\nAccept: a/b\r\n"
                   "inference-header-content-length: 4\r\n"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  const api::InferCall& call = service_.waiting.begin()->second.call;
  EXPECT_EQ(call.dialect, api::Dialect::kV2);
  EXPECT_EQ(call.model, "a/b");
  EXPECT_EQ(call.version, "3");
  EXPECT_EQ(call.content_type, "application/octet-stream");
  EXPECT_EQ(call.accept, "a/b");
  EXPECT_EQ(call.json_length_header, "4");
  EXPECT_EQ(call.body, "body bytes");
  EXPECT_GE(call.body.capacity(), call.body.size() + 64);
  EXPECT_GE(call.ingress.amount(), Bytes(call.body.size()));
  EXPECT_EQ(ingress_.used(), call.ingress.amount());
  service_.answer_oldest();
  const std::string reply = client.next_reply();
  EXPECT_EQ(status_of(reply), 200);
  EXPECT_TRUE(has_header(reply, "X-Model: a/b"));
  EXPECT_EQ(body_of(reply), "body bytes");
}

TEST_F(HttpServerTest, InvocationsSpeakTheSageMakerDialect) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(
      post("/invocations", "a,b", "Content-Type: text/csv\r\nX-Amzn-SageMaker-Custom-Attributes: c\r\n"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  EXPECT_EQ(service_.waiting.begin()->second.call.dialect, api::Dialect::kSageMaker);
  EXPECT_EQ(service_.waiting.begin()->second.call.model, "");
  service_.answer_oldest();
  EXPECT_EQ(body_of(client.next_reply()), "a,b");
}

TEST_F(HttpServerTest, GivesTheEnvelopeBackAfterTheLastByte) {
  service_.max_body_size = mib(4);
  serve();
  auto client = connect();
  const std::string body(mib(3).size(), 'b');
  client.send(post(kInfer, body));
  client.run_until([&] { return service_.infer_calls == 1; });
  EXPECT_GE(ingress_.used(), mib(3));
  EXPECT_EQ(body_of(client.next_reply()), body);
  client.run_until([&] { return ingress_.used() == Bytes(); });
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrderOneAtATime) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "first") + get("/v2/health/live") + post(kInfer, "second") + get("/ping"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  EXPECT_EQ(client.received(), "");
  service_.answer_oldest();
  EXPECT_EQ(body_of(client.next_reply()), "first");
  EXPECT_EQ(body_of(client.next_reply()), R"({"live":true})");
  client.run_until([&] { return service_.waiting.size() == 1; });
  service_.answer_oldest();
  EXPECT_EQ(body_of(client.next_reply()), "second");
  EXPECT_EQ(status_of(client.next_reply()), 200);
  EXPECT_EQ(service_.infer_calls, 2);
}

TEST_F(HttpServerTest, KeepsRequestsApartThatArriveInPiecesWhileACallWaits) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "first"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  const std::string second = post(kInfer, "second");
  const std::string third = post(kInfer, "third");
  client.send(second + third.substr(0, 10));
  for (int i = 0; i < 4; ++i) io_.poll_one();
  client.send(third.substr(10));
  for (const char* expected : {"first", "second", "third"}) {
    client.run_until([&] { return service_.waiting.size() == 1; });
    service_.answer_oldest();
    EXPECT_EQ(body_of(client.next_reply()), expected);
  }
}

TEST_F(HttpServerTest, AThousandPipelinedRequestsGetAThousandReplies) {
  serve();
  auto client = connect();
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += post(kInfer, std::to_string(i));
  client.send(requests);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(body_of(client.next_reply()), std::to_string(i));
}

TEST_F(HttpServerTest, AnErrorIsOneReplyAndTheNextRequestGetsItsOwn) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "a"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  service_.fail_oldest(Status(Code::kOverloaded, "queue_time", "wait 3 s").with_retry_after(3));
  const std::string refused = client.next_reply();
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_TRUE(has_header(refused, "Retry-After: 3")) << refused;
  EXPECT_TRUE(has_header(refused, "X-Tonnage-Reason: queue_time")) << refused;
  EXPECT_EQ(body_of(refused), R"({"error":"wait 3 s"})");
  client.send(post(kInfer, "b"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  service_.answer_oldest();
  EXPECT_EQ(body_of(client.next_reply()), "b");
  EXPECT_EQ(client.received(), "");
}

TEST_F(HttpServerTest, OverloadMayBe429) {
  options_.overload_status = 429;
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "a"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  service_.fail_oldest(Status(Code::kOverloaded, "lane_full", "full"));
  EXPECT_EQ(status_of(client.next_reply()), 429);
}

TEST_F(HttpServerTest, AClientThatLeavesCancelsItsCallAtOnce) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "a"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  client.leave();
  client.run_until([&] { return service_.cancel_calls == 1; });
  EXPECT_TRUE(service_.waiting.empty());
  EXPECT_EQ(server_->busy_connections(), 0U);
  EXPECT_EQ(ingress_.used(), Bytes());
}

TEST_F(HttpServerTest, AnAnswerAfterTheClientLeftGoesNowhere) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "a"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  auto late = std::move(service_.waiting.begin()->second);
  service_.waiting.clear();
  client.leave();
  client.run_until([&] { return server_->busy_connections() == 0; });
  late.done.answer(testkit::FakeService::reply_to(late.call));
  EXPECT_EQ(ingress_.used(), Bytes());
}

TEST_F(HttpServerTest, HeadHasTheHeadersOfGetAndNoBody) {
  serve();
  auto client = connect();
  client.send("HEAD /v2/health/live HTTP/1.1\r\n\r\n");
  const std::string reply = client.next_reply(false);
  EXPECT_TRUE(has_header(reply, "Content-Length: 13")) << reply;
  EXPECT_EQ(body_of(client.exchange(get("/ping"))), "");
}

TEST_F(HttpServerTest, ExpectContinueIsAnsweredBeforeTheBodyIsSent) {
  serve();
  auto client = connect();
  client.send("POST /v2/models/known/infer HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  client.run_until([&] { return client.received() == "HTTP/1.1 100 Continue\r\n\r\n"; });
  client.next_reply();
  client.send("body");
  EXPECT_EQ(body_of(client.next_reply()), "body");
}

TEST_F(HttpServerTest, AnEmptyExpectHeaderIsNothingSpecial) {
  serve();
  auto client = connect();
  EXPECT_EQ(body_of(client.exchange(post(kInfer, "body", "Expect:\r\n"))), "body");
}

TEST_F(HttpServerTest, Http10ClosesUnlessAskedToKeep) {
  serve();
  auto closing = connect();
  EXPECT_TRUE(has_header(closing.exchange("GET /ping HTTP/1.0\r\n\r\n"), "Connection: close"));
  closing.await_close();
  auto keeping = connect();
  const std::string request = "GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_TRUE(has_header(keeping.exchange(request), "Connection: keep-alive"));
  EXPECT_EQ(status_of(keeping.exchange(request)), 200);
}

TEST_F(HttpServerTest, ClosesWhenAskedTo) {
  serve();
  auto client = connect();
  EXPECT_EQ(body_of(client.exchange(post(kInfer, "a", "Connection: close\r\n"))), "a");
  client.await_close();
}

TEST_F(HttpServerTest, WhileItDrainsHealthIsAnsweredAndNewWorkRefused) {
  service_.echoes = false;
  serve();
  auto busy = connect();
  busy.send(post(kInfer, "a"));
  busy.run_until([&] { return service_.waiting.size() == 1; });
  auto half_sent = connect();
  half_sent.send("POST /v2/models/known/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nb");
  half_sent.run_until([&] { return server_->busy_connections() == 2 && ingress_.used() > Bytes(); });
  while (io_.poll() > 0) {
  }
  auto probe = connect();  // just connected, has not asked yet
  while (io_.poll() > 0) {
  }
  service_.ready = false;
  service_.draining = true;
  server_->drain();

  const std::string readiness = probe.exchange(get("/v2/health/ready"));
  EXPECT_EQ(status_of(readiness), 400);
  EXPECT_TRUE(has_header(readiness, "Connection: close"));
  auto late = connect();
  const std::string refused = late.exchange(post(kInfer, "c"));
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_TRUE(has_header(refused, "X-Tonnage-Reason: draining"));
  EXPECT_EQ(service_.infer_calls, 1);

  half_sent.send("b");
  half_sent.run_until([&] { return service_.waiting.size() == 2; });
  service_.answer_oldest();
  service_.answer_oldest();
  EXPECT_EQ(body_of(busy.next_reply()), "a");
  EXPECT_EQ(body_of(half_sent.next_reply()), "bb") << "what was begun is finished";
  for (auto* client : {&busy, &half_sent, &probe, &late}) {
    client->await_close();
    client->leave();
  }
  late.run_until([&] { return server_->busy_connections() == 0; });
}

TEST_F(HttpServerTest, ModelsComeAndGoByCallOnlyWhereThatIsAllowed) {
  serve();
  auto stranger = connect();
  const std::string refused = stranger.exchange(post("/v2/repository/models/m/load", "{}"));
  EXPECT_EQ(status_of(refused), 403);
  EXPECT_TRUE(has_header(refused, "X-Tonnage-Reason: model_control_off"));
  EXPECT_EQ(service_.admin_calls, 0);
}

TEST_F(HttpServerTest, AnOperatorIsOnTheLoopbackAndSpeaksForItself) {
  options_.admin = true;
  options_.admin_token = "a-token-of-some-length";
  serve();
  auto client = connect();
  EXPECT_EQ(body_of(client.exchange(post("/v2/repository/index", "{}"))), "0  {}");
  EXPECT_EQ(body_of(client.exchange(post("/v2/repository/models/a%2Fb/load", ""))), "1 a/b ");
  EXPECT_EQ(body_of(client.exchange(post("/v2/repository/models/m/unload", "x"))), "2 m x");
  EXPECT_EQ(body_of(client.exchange(post("/v2/repository/models/m/rotate", ""))), "3 m ");
  for (const char* header : {"X-Forwarded-For: 10.0.0.1\r\n", "Forwarded: for=10.0.0.1\r\n",
                             "Origin: http://example.org\r\n", "Via: 1.1 proxy\r\n"}) {
    const std::string refused = client.exchange(post("/v2/repository/models/m/unload", "", header));
    EXPECT_EQ(status_of(refused), 403) << header;
    EXPECT_TRUE(has_header(refused, "X-Tonnage-Reason: not_an_operator"));
    const std::string with_token = std::string(header) + "Authorization: Bearer a-token-of-some-length\r\n";
    EXPECT_EQ(status_of(client.exchange(post("/v2/repository/models/m/unload", "", with_token))), 200);
    const std::string wrong = std::string(header) + "Authorization: Bearer a-token-of-some-lengtH\r\n";
    EXPECT_EQ(status_of(client.exchange(post("/v2/repository/models/m/unload", "", wrong))), 403);
  }
  EXPECT_EQ(status_of(client.exchange(get("/v2/repository/index"))), 405);
}

TEST_F(HttpServerTest, DrainClosesIdleConnectionsAndLetsCallsFinish) {
  service_.echoes = false;
  serve();
  auto idle = connect();
  EXPECT_EQ(status_of(idle.exchange(get("/ping"))), 200);
  auto busy = connect();
  busy.send(post(kInfer, "a"));
  busy.run_until([&] { return service_.waiting.size() == 1; });
  server_->drain();
  idle.await_close();
  EXPECT_EQ(server_->busy_connections(), 1U);
  service_.answer_oldest();
  const std::string reply = busy.next_reply();
  EXPECT_EQ(body_of(reply), "a");
  EXPECT_TRUE(has_header(reply, "Connection: close"));
  busy.await_close();
}

TEST_F(HttpServerTest, GoingAwayCancelsWhatIsInFlight) {
  service_.echoes = false;
  serve();
  auto client = connect();
  client.send(post(kInfer, "a"));
  client.run_until([&] { return service_.waiting.size() == 1; });
  server_.reset();
  EXPECT_EQ(service_.cancel_calls, 1);
  EXPECT_TRUE(service_.waiting.empty());
  client.await_close();
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  serve();
  HttpOptions second = options_;
  second.port = server_->port();
  const auto again = HttpServer::listen(io_, second, service_, *log_);
  ASSERT_FALSE(again.is_ok());
  EXPECT_EQ(again.status().code(), Code::kUnavailable);
  EXPECT_EQ(again.status().reason(), "port_in_use");
  EXPECT_NE(again.status().detail().find(std::to_string(server_->port())), std::string::npos);
}

TEST_F(HttpServerTest, CountsRepliesAndConnections) {
  telemetry::Registry registry;
  options_.metrics_registry = &registry;
  serve();
  auto client = connect();
  client.exchange(get("/ping"));
  client.exchange(get("/nothing"));
  const std::string text = registry.prometheus_text();
  EXPECT_NE(text.find("status=\"200\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("status=\"404\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("tonnage_http_connections{port=\""), std::string::npos) << text;
  server_.reset();  // before the registry
}

}  // namespace
}  // namespace tonnage::http
