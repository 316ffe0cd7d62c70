// SPDX-License-Identifier: Apache-2.0
#include "load/client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <map>

#include "base/spans.h"
#include "load/connection.h"

namespace tonnage::load {
namespace {

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// A server that does what the test says, on the test's own thread.
class ScriptedServer {
 public:
  ScriptedServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(0, ::bind(listener_.get(), pointer_cast<sockaddr>(&address), size));
    EXPECT_EQ(0, ::listen(listener_.get(), 16));
    EXPECT_EQ(0, ::getsockname(listener_.get(), pointer_cast<sockaddr>(&address), &size));
    port_ = ntohs(address.sin_port);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  UniqueFd accept() { return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  void close() { listener_.reset(); }

 private:
  UniqueFd listener_;
  std::uint16_t port_ = 0;
};

std::string receive(const UniqueFd& fd) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}
void answer(const UniqueFd& fd, const std::string& text) {
  EXPECT_EQ(static_cast<ssize_t>(text.size()), ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL));
}

class ClientTest : public testing::Test {
 protected:
  std::unique_ptr<Client> connect(std::uint32_t connections) {
    return Client::make(parse_endpoint(server.url()).value(), connections,
                        [this](std::uint64_t tag, Result<HttpReply> reply) {
                          told.emplace(tag, reply.is_ok() ? std::to_string(reply->status)
                                                          : std::string(reply.status().reason()));
                        })
        .value();
  }
  void wait_for(Client& client, std::size_t replies) {
    while (told.size() < replies) client.wait(kNever - seconds(1));
  }

  ScriptedServer server;
  std::multimap<std::uint64_t, std::string> told;
};

TEST_F(ClientTest, KeepsAConnectionForTheNextRequest) {
  const auto client = connect(4);
  client->send(1, "one", false);
  const UniqueFd peer = server.accept();
  client->wait(now());
  EXPECT_EQ("one", receive(peer));
  answer(peer, kOk);
  wait_for(*client, 1);
  client->send(2, "two", false);
  EXPECT_EQ("two", receive(peer));
  answer(peer, kOk);
  wait_for(*client, 2);
  EXPECT_EQ(1U, client->open_connections());
  EXPECT_EQ("200", told.find(2)->second);
}

TEST_F(ClientTest, HasNoRoomBeyondItsConnections) {
  const auto client = connect(2);
  client->send(1, "a", false);
  EXPECT_TRUE(client->has_room());
  client->send(2, "b", false);
  EXPECT_FALSE(client->has_room());
}

TEST_F(ClientTest, SaysWhenTheServerClosesInsteadOfAnswering) {
  const auto client = connect(1);
  client->send(7, "x", false);
  {
    const UniqueFd peer = server.accept();
    client->wait(now());
    EXPECT_EQ("x", receive(peer));
  }
  wait_for(*client, 1);
  EXPECT_EQ("connection_lost", told.find(7)->second);
  EXPECT_EQ(0U, client->open_connections());
}

TEST_F(ClientTest, SaysWhenNobodyListens) {
  server.close();
  const auto client = connect(1);
  client->send(7, "x", false);
  wait_for(*client, 1);
  EXPECT_EQ("connect_failed", told.find(7)->second);
}

TEST_F(ClientTest, LeavesAConnectionThatTheServerWantsClosed) {
  const auto client = connect(1);
  client->send(1, "x", false);
  const UniqueFd peer = server.accept();
  client->wait(now());
  answer(peer, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  wait_for(*client, 1);
  EXPECT_EQ("413", told.find(1)->second);
  EXPECT_EQ(0U, client->open_connections());
}

TEST(Endpoint, IsReadFromAUrl) {
  const Endpoint endpoint = parse_endpoint("http://127.0.0.1:8123/base/").value();
  EXPECT_EQ("127.0.0.1:8123", endpoint.host);
  EXPECT_EQ("/base", endpoint.path);
  EXPECT_EQ(8123, ntohs(pointer_cast<const sockaddr_in>(&endpoint.address)->sin_port));
  for (const char* url : {"https://x", "127.0.0.1:80", "http://", "http://:80", "http://a:"}) {
    EXPECT_EQ("bad_url", parse_endpoint(url).status().reason()) << url;
  }
}

}  // namespace
}  // namespace tonnage::load
