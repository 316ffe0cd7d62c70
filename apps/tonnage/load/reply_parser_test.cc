// SPDX-License-Identifier: Apache-2.0
#include "load/reply_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace tonnage::load {
namespace {

const std::string kReply =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 5\r\nX-Tonnage-Reason: lane_full\r\n"
    "X-Tonnage-Truncated-Rows: 2\r\n\r\nhello";

TEST(ReplyParser, ReadsAReplyHoweverItIsCut) {
  for (std::size_t cut = 1; cut < kReply.size(); ++cut) {
    ReplyParser parser;
    parser.reset(true);
    EXPECT_FALSE(parser.feed(std::string_view(kReply).substr(0, cut)).value()) << cut;
    ASSERT_TRUE(parser.feed(std::string_view(kReply).substr(cut)).value()) << cut;
    const HttpReply reply = parser.take();
    EXPECT_EQ(503, reply.status);
    EXPECT_EQ("lane_full", reply.reason);
    EXPECT_EQ(2U, reply.truncated);
    EXPECT_EQ("hello", reply.body);
    EXPECT_TRUE(reply.keep_alive);
  }
}

TEST(ReplyParser, DropsTheBodyWhenNobodyWantsIt) {
  ReplyParser parser;
  parser.reset(false);
  EXPECT_TRUE(parser.feed(kReply).value());
  EXPECT_EQ("", parser.take().body);
}

TEST(ReplyParser, IsReadyForTheNextReplyAfterReset) {
  ReplyParser parser;
  for (int i = 0; i < 3; ++i) {
    parser.reset(true);
    EXPECT_FALSE(parser.has_begun());
    EXPECT_TRUE(parser.feed("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").value());
    const HttpReply reply = parser.take();
    EXPECT_EQ(200, reply.status);
    EXPECT_FALSE(reply.keep_alive);
  }
}

TEST(ReplyParser, RefusesWhatIsNotAReply) {
  for (const char* text :
       {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"}) {
    ReplyParser parser;
    parser.reset(true);
    EXPECT_EQ("bad_reply", parser.feed(text).status().reason()) << text;
  }
}

}  // namespace
}  // namespace tonnage::load
