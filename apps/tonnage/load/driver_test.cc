// SPDX-License-Identifier: Apache-2.0
#include "load/driver.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "base/spans.h"

namespace tonnage::load {
namespace {

// Accepts connections one after another and gives each the scripted replies in turn, on a thread of
// its own; a null reply closes the connection instead.
class RepliesInTurn {
 public:
  explicit RepliesInTurn(std::vector<const char*> replies)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), replies_(std::move(replies)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(0, ::bind(listener_.get(), pointer_cast<sockaddr>(&address), size));
    EXPECT_EQ(0, ::listen(listener_.get(), 16));
    EXPECT_EQ(0, ::getsockname(listener_.get(), pointer_cast<sockaddr>(&address), &size));
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::jthread([this] { serve(); });
  }
  ~RepliesInTurn() { ::shutdown(listener_.get(), SHUT_RDWR); }
  Endpoint endpoint() const { return parse_endpoint(url_).value(); }

 private:
  void serve() {
    std::size_t next = 0;
    for (;;) {
      const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
      std::array<char, 65536> buffer{};
      while (::recv(peer.get(), buffer.data(), buffer.size(), 0) > 0) {
        const char* reply = replies_.at(next++ % replies_.size());
        if (reply == nullptr) break;
        ::send(peer.get(), reply, std::strlen(reply), MSG_NOSIGNAL);
      }
    }
  }

  UniqueFd listener_;
  std::vector<const char*> replies_;
  std::string url_;
  std::jthread thread_;
};

constexpr const char* kOk = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
constexpr const char* kFull = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nX-Tonnage-Reason: lane_full\r\n\r\n";

Workload small_workload() {
  ModelInfo model{"m", {{"x", "UINT8", 1, {-1, 4}}}, {}};
  return Workload::make({}, std::move(model), {}).value();
}

class DriverTest : public testing::Test {
 protected:
  Result<RunTimes> drive(RepliesInTurn& server, const DriveOptions& options) {
    Workload workload = small_workload();
    Observer observer;
    observer.on_sample = [this](const Sample& sample) { samples.push_back(sample); };
    return run_requests(server.endpoint(), workload, options, observer);
  }
  DriveOptions ten() const {
    DriveOptions options;
    options.requests = 10;
    options.max_connections = 1;
    return options;
  }
  std::vector<Sample> samples;
};

TEST_F(DriverTest, SendsExactlyAsManyAsAsked) {
  RepliesInTurn server({kOk});
  ASSERT_TRUE(drive(server, ten()).is_ok());
  EXPECT_EQ(10U, samples.size());
  for (const Sample& sample : samples) EXPECT_EQ("ok", sample.reason);
}

TEST_F(DriverTest, TellsRefusalsApart) {
  RepliesInTurn server(
      {kOk, kFull, nullptr, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "nonsense\r\n\r\n"});
  ASSERT_TRUE(drive(server, ten()).is_ok());
  std::map<std::string, int> seen;
  for (const Sample& sample : samples) ++seen[sample.reason];
  EXPECT_EQ((std::map<std::string, int>{
                {"ok", 2}, {"lane_full", 2}, {"connection_lost", 2}, {"http_500", 2}, {"bad_reply", 2}}),
            seen);
}

TEST_F(DriverTest, LatencyOfALateStartCountsFromWhenItWasDue) {
  // One connection and arrivals a microsecond apart: nearly all wait for the one before.
  RepliesInTurn server({kOk});
  DriveOptions options = ten();
  options.rate = 1e6;
  options.spacing = Spacing::kFixed;
  ASSERT_TRUE(drive(server, options).is_ok());
  ASSERT_EQ(10U, samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(i + 1), to_seconds(samples[i].start) * 1e6, 0.01);
    if (i > 0) {
      EXPECT_GE(samples[i].start + samples[i].latency, samples[i - 1].start + samples[i - 1].latency);
    }
  }
}

TEST_F(DriverTest, StopsWhenToldAndStillCollectsWhatIsInFlight) {
  RepliesInTurn server({kOk});
  DriveOptions options = ten();
  options.requests = 0;
  options.duration = std::chrono::hours(1);
  Workload workload = small_workload();
  Observer observer;
  observer.on_sample = [this](const Sample& sample) { samples.push_back(sample); };
  observer.wants_stop = [this] { return samples.size() >= 3; };
  ASSERT_TRUE(run_requests(server.endpoint(), workload, options, observer).is_ok());
  EXPECT_GE(samples.size(), 3U);
}

TEST(Driver, SaysWhenNobodyListens) {
  Endpoint nobody = parse_endpoint("http://127.0.0.1:1").value();
  Workload workload = small_workload();
  DriveOptions options;
  options.requests = 5;
  Observer observer;
  observer.on_sample = [](const Sample&) {};
  EXPECT_EQ("connect_failed", run_requests(std::move(nobody), workload, options, observer).status().reason());
}

}  // namespace
}  // namespace tonnage::load
