// SPDX-License-Identifier: Apache-2.0
// The pure parts: targets, replies, chunks.
#include <gtest/gtest.h>

#include "base/random.h"
#include "http/detail/chunk_decoder.h"
#include "http/detail/head_parser.h"
#include "http/detail/reply.h"
#include "http/detail/target.h"

namespace tonnage::http {
namespace {

TEST(Target, KnowsEveryEndpoint) {
  const std::pair<const char*, Endpoint> cases[] = {{"/v2", Endpoint::kServerMetadata},
                                                    {"/v2/", Endpoint::kServerMetadata},
                                                    {"/v2/health/live", Endpoint::kLive},
                                                    {"/v2/health/ready?x=1", Endpoint::kReady},
                                                    {"/v2/models", Endpoint::kModels},
                                                    {"/v2/models/m", Endpoint::kModelMetadata},
                                                    {"/v2/models/m/ready", Endpoint::kModelReady},
                                                    {"/v2/models/m/infer", Endpoint::kInfer},
                                                    {"/v2/repository/models/m", Endpoint::kUnknown},
                                                    {"/v2/repository/models//load", Endpoint::kUnknown},
                                                    {"/v1/tonnage/status", Endpoint::kStatus},
                                                    {"/ping", Endpoint::kPing},
                                                    {"/invocations", Endpoint::kInvocations},
                                                    {"/metrics/", Endpoint::kMetrics},
                                                    {"http://host:80/ping", Endpoint::kPing},
                                                    {"/", Endpoint::kUnknown},
                                                    {"/v2/models//infer", Endpoint::kUnknown},
                                                    {"/v2/models/m/infer/x", Endpoint::kUnknown},
                                                    {"/V2", Endpoint::kUnknown},
                                                    {"/v2/models/m/versions", Endpoint::kUnknown}};
  for (const auto& [text, endpoint] : cases) {
    const Result<Target> target = parse_target(text);
    ASSERT_TRUE(target.is_ok()) << text;
    EXPECT_EQ(target->endpoint, endpoint) << text;
  }
}

TEST(Target, KnowsEachCallOfAnOperatorAndWhetherItNamesAModel) {
  using api::AdminKind;
  const std::pair<const char*, AdminKind> cases[] = {
      {"/v2/repository/index", AdminKind::kIndex},
      {"/v2/repository/models/a%2Fb/load", AdminKind::kLoad},
      {"/v2/repository/models/a%2Fb/unload/", AdminKind::kUnload},
      {"/v2/repository/models/a%2Fb/rotate?x=1", AdminKind::kRotate},
      {"/v2/repository/models/a%2Fb/enforce", AdminKind::kEnforce},
      {"/v2/repository/models/a%2Fb/observe", AdminKind::kObserve}};
  for (const auto& [text, kind] : cases) {
    const Result<Target> target = parse_target(text);
    ASSERT_TRUE(target.is_ok()) << text;
    EXPECT_EQ(target->endpoint, Endpoint::kAdmin) << text;
    EXPECT_EQ(target->admin, kind) << text;
    EXPECT_EQ(target->model, kind == AdminKind::kIndex ? "" : "a/b") << text;
  }
  for (const char* text : {"/v2/repository", "/v2/repository/load", "/v2/repository/models/index",
                           "/v2/repository/models/m/index", "/v2/repository/models/m/load/x",
                           "/v2/repository/others/m/load", "/v2/repositoryindex"}) {
    EXPECT_EQ(parse_target(text)->endpoint, Endpoint::kUnknown) << text;
  }
}

TEST(Target, DecodesNamesAfterCuttingThePath) {
  const Target target = *parse_target("/v2/models/a%2Fb%20c/versions/1/infer?q=%");
  EXPECT_EQ(target.endpoint, Endpoint::kInfer);
  EXPECT_EQ(target.model, "a/b c");
  EXPECT_EQ(target.version, "1");
}

TEST(Target, RefusesBrokenEncodingsAndPathsWithoutASlash) {
  for (const char* text : {"/v2/models/%", "/v2/models/%2", "/v2/models/%gg/infer", "ping", ""}) {
    EXPECT_EQ(parse_target(text).status().reason(), "bad_target") << text;
  }
}

TEST(Reply, HeaderValuesCannotSmuggleLines) {
  OutgoingReply reply = json_reply(200, "{}");
  reply.headers.emplace_back("X-A", "b\r\nX-Evil: 1");
  EXPECT_EQ(
      head_text(reply, {11, true}),
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-A: b  X-Evil: 1\r\nContent-Length: 2\r\n\r\n");
}

TEST(Reply, EachCodeHasItsStatus) {
  EXPECT_EQ(error_reply(invalid("x", "y"), 503).status, 400);
  EXPECT_EQ(error_reply(Status(Code::kOverloaded, "x", "y"), 429).status, 429);
  EXPECT_EQ(error_reply(Status(Code::kUnavailable, "x", "y"), 429).status, 503);
  EXPECT_EQ(error_reply(Status(Code::kTooLarge, "x", "y"), 503).status, 413);
  EXPECT_EQ(error_reply(Status(Code::kDeadlineExceeded, "x", "y"), 503).status, 504);
}

class Collector final : public ChunkSink {
 public:
  Status on_chunk(std::uint64_t size) override {
    sizes.push_back(size);
    return Status::ok();
  }
  Status on_data(std::string_view data) override {
    text += data;
    return Status::ok();
  }
  std::vector<std::uint64_t> sizes;
  std::string text;
};

TEST(ChunkDecoder, GivesTheSameHoweverTheBytesAreCut) {
  const std::string body = "5\r\nhello\r\n1;e=\"q\"\r\n \r\n00005\r\nworld\r\n0\r\nA: b\r\nC: d\r\n\r\n";
  const std::string rest = "GET /next";
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    ChunkDecoder decoder;
    Collector sink;
    std::string input = body + rest;
    std::size_t at = 0;
    while (!decoder.is_done()) {
      const std::size_t take = std::min<std::size_t>(1 + random.below(9), input.size() - at);
      std::size_t consumed = 0;
      ASSERT_TRUE(decoder.feed(std::string_view(input).substr(at, take), sink, consumed).is_ok());
      at += consumed;
    }
    EXPECT_EQ(sink.text, "hello world");
    EXPECT_EQ(sink.sizes, (std::vector<std::uint64_t>{5, 1, 5}));
    EXPECT_EQ(input.substr(at), rest);
  }
}

TEST(ChunkDecoder, BoundsExtensionsAndTrailers) {
  Collector sink;
  std::size_t consumed = 0;
  ChunkDecoder extension;
  EXPECT_EQ(extension.feed("1;" + std::string(5000, 'x'), sink, consumed).reason(), "bad_chunk");
  ChunkDecoder trailers;
  std::string lines = "0\r\n";
  for (int i = 0; i < 5000; ++i) lines += "A: b\r\n";
  EXPECT_EQ(trailers.feed(lines, sink, consumed).reason(), "bad_chunk");
}

TEST(HeadParser, GivesTheSameHoweverTheBytesAreCut) {
  const std::string text =
      "\r\nPOST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Type:  application/json \r\naccept: a\r\n"
      "Accept: b\r\nContent-Length: 3\r\n\r\nabc";
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    HeadParser parser;
    std::string pending;
    std::size_t at = 0;
    HeadParser::Step step = HeadParser::Step::kNeedMore;
    while (step == HeadParser::Step::kNeedMore) {
      ASSERT_LT(at, text.size());
      const std::size_t take = std::min<std::size_t>(1 + random.below(20), text.size() - at);
      pending += text.substr(at, take);
      at += take;
      std::size_t consumed = 0;
      step = parser.parse(pending, consumed);
      pending.erase(0, consumed);
    }
    ASSERT_EQ(step, HeadParser::Step::kDone);
    EXPECT_EQ(pending + text.substr(at), "abc");
    EXPECT_EQ(parser.head().method, Method::kPost);
    EXPECT_EQ(parser.head().content_type, "application/json");
    EXPECT_EQ(parser.head().accept, "a, b");
    EXPECT_EQ(parser.head().content_length, 3U);
  }
}

TEST(HeadParser, NoiseIsRefusedOrAsksForMoreAndNeverEndsTheProcess) {
  Random random(5);
  const std::string seed =
      "POST /x HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seed;
    for (int changes = 0; changes < 3; ++changes) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    HeadParser parser;
    std::size_t consumed = 0;
    const auto step = parser.parse(text, consumed);
    EXPECT_LE(consumed, text.size());
    EXPECT_TRUE(step != HeadParser::Step::kFailed || !parser.error().reason.empty());
  }
}

}  // namespace
}  // namespace tonnage::http
