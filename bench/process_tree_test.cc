// SPDX-License-Identifier: Apache-2.0
#include "bench/process_tree.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "testkit/sanitizer.h"
#include "wire/segment.h"

namespace tonnage::bench {
namespace {

TEST(ProcessUse, IsReadFromTheKernelsText) {
  ProcessUse use;
  EXPECT_TRUE(parse_status("Name:\tworker\nVmPeak:\t 9 kB\nVmHWM:\t  200 kB\nVmRSS:\t 100 kB\n", use));
  EXPECT_EQ("worker", use.name);
  EXPECT_EQ(204800U, use.vm_hwm);
  EXPECT_TRUE(parse_statm("1000 50 20 1 0 80 0\n", 4096, use));
  EXPECT_EQ(30U * 4096, use.rss_anon);
  EXPECT_TRUE(parse_statm("1000 40 20 1 0 80 0\n", 4096, use));
  EXPECT_EQ(20U * 4096, use.rss_anon);
  EXPECT_EQ(30U * 4096, use.highest_rss_anon);
  EXPECT_FALSE(parse_statm("", 4096, use));
  EXPECT_FALSE(parse_status("", use));
}

// A child that holds `bytes` of touched memory until it is told to go.
class Holder {
 public:
  explicit Holder(std::size_t bytes) {
    std::array<int, 2> ready{};
    EXPECT_EQ(0, ::pipe(ready.data()));
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::vector<char> memory(bytes, 'x');
      static_cast<void>(!::write(ready[1], memory.data(), 1));
      ::pause();
      ::_exit(0);
    }
    char byte = 0;
    EXPECT_EQ(1, ::read(ready[0], &byte, 1));
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
};

TEST(ProcessTree, CountsTheMemoryOfChildren) {
  if (testkit::kIsSanitized) GTEST_SKIP() << "not under a sanitizer (testkit/sanitizer.h)";
  constexpr std::uint64_t kBytes = 64 << 20;
  const std::uint64_t before = ProcessTree(::getpid()).read().anonymous;
  const Holder child(kBytes);
  const std::uint64_t after = ProcessTree(::getpid()).read().anonymous;
  EXPECT_GE(after, before + kBytes);
  EXPECT_LE(after, before + kBytes + (16U << 20));
}

TEST(ProcessTree, CountsASharedSegmentOnceHoweverManyHoldIt) {
  const std::uint64_t before = ProcessTree(::getpid()).read().shared;
  const auto segment = wire::Segment::create("shared-once", mib(8)).value();
  const UniqueFd second(::dup(segment.fd()));
  const Holder child(1);  // inherits both descriptors
  EXPECT_EQ(before + (8U << 20), ProcessTree(::getpid()).read().shared);
}

TEST(ProcessTree, SeesASegmentThatAppearsBetweenListings) {
  ProcessTree tree(::getpid());
  const std::uint64_t before = tree.read().shared;
  const auto segment = wire::Segment::create("appears", mib(8)).value();
  EXPECT_EQ(before + (8U << 20), tree.read().shared);
}

TEST(ProcessTree, OfADeadProcessIsEmpty) {
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  EXPECT_EQ(0U, ProcessTree(gone).read().total());
}

}  // namespace
}  // namespace tonnage::bench
