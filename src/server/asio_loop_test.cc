// SPDX-License-Identifier: Apache-2.0
#include "server/asio_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace tonnage::server {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  UniqueFd read, write;
};

class AsioLoopTest : public ::testing::Test {
 protected:
  boost::asio::io_context io_;
  AsioLoop loop_{io_};
};

TEST_F(AsioLoopTest, RunsPostedWorkInOrderAndNeverInsideTheCall) {
  std::vector<int> order;
  loop_.post([&] { order.push_back(1); });
  loop_.post([&] { order.push_back(2); });
  EXPECT_TRUE(order.empty());
  io_.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(AsioLoopTest, TakesPostsFromAnotherThread) {
  bool ran = false;
  auto keep = boost::asio::make_work_guard(io_);
  std::jthread other([&] {
    loop_.post([&] {
      ran = true;
      keep.reset();
    });
  });
  io_.run();
  EXPECT_TRUE(ran);
}

TEST_F(AsioLoopTest, ATimerInThePastFiresOnceAndNotInsideTheCall) {
  int fired = 0;
  const auto timer = loop_.call_at(loop_.now() - seconds(5), [&] { ++fired; });
  EXPECT_EQ(fired, 0);
  io_.run();
  EXPECT_EQ(fired, 1);
}

TEST_F(AsioLoopTest, ADestroyedTimerNeverFires) {
  bool fired = false;
  auto timer = loop_.call_at(loop_.now(), [&] { fired = true; });
  loop_.post([&] { timer.reset(); });
  io_.run();
  EXPECT_FALSE(fired);
}

TEST_F(AsioLoopTest, ATimerMayDestroyItself) {
  Loop::Timer timer;
  bool fired = false;
  timer = loop_.call_at(loop_.now(), [&] {
    timer.reset();
    fired = true;
  });
  io_.run();
  EXPECT_TRUE(fired);
}

TEST_F(AsioLoopTest, ATimerForNeverDoesNotFire) {
  bool fired = false;
  auto timer = loop_.call_at(kNever, [&] { fired = true; });
  io_.poll();
  EXPECT_FALSE(fired);
}

TEST_F(AsioLoopTest, AWatchFiresAsLongAsThereIsSomethingToRead) {
  Pipe pipe;
  ASSERT_EQ(::write(pipe.write.get(), "abc", 3), 3);
  std::string seen;
  Loop::Watch watch;
  watch = loop_.watch_readable(pipe.read.get(), [&] {
    char c = 0;
    ASSERT_EQ(::read(pipe.read.get(), &c, 1), 1);
    seen += c;
    if (seen.size() == 3) watch.reset();
  });
  io_.run();
  EXPECT_EQ(seen, "abc");
}

TEST_F(AsioLoopTest, AWatchLeavesItsDescriptorOpen) {
  Pipe pipe;
  auto watch = loop_.watch_readable(pipe.read.get(), [] {});
  watch.reset();
  io_.run();
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(pipe.read.get(), &c, 1), 1);
}

TEST_F(AsioLoopTest, ADestroyedWatchNeverFires) {
  Pipe pipe;
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  bool fired = false;
  auto watch = loop_.watch_readable(pipe.read.get(), [&] { fired = true; });
  watch.reset();
  io_.run();
  EXPECT_FALSE(fired);
}

}  // namespace
}  // namespace tonnage::server
