// SPDX-License-Identifier: Apache-2.0
#include "memory/limits.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "memory/detail/limits_of.h"

namespace tonnage::memory {
namespace {

namespace fs = std::filesystem;

// A machine made of plain files.
class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    std::string pattern = (fs::temp_directory_path() / "limits.XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    write("/proc/meminfo", "MemFree:  1 kB\nMemTotal:       8388608 kB\n");
  }
  ~LimitsTest() override { fs::remove_all(root_); }
  LimitsTest(const LimitsTest&) = delete;
  LimitsTest& operator=(const LimitsTest&) = delete;

  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // Every folder below /sys/fs/cgroup that exists is a cgroup of this kind.
  std::vector<DetectedLimit> detect(long magic) {
    return detail::detect_limits(root_, magic_reader(magic)).value();
  }
  detail::MagicReader magic_reader(long magic) {
    return [this, magic](const std::string& path) -> std::optional<long> {
      if (!fs::is_directory(path)) return std::nullopt;
      return path.starts_with(root_ + "/sys/fs/cgroup") ? magic : TMPFS_MAGIC;
    };
  }
  void mount_v2(const std::string& own_path, const std::string& mount_root = "/") {
    write("/proc/self/cgroup", "0::" + own_path + "\n");
    write("/proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n30 22 0:26 " + mount_root +
                                      " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    fs::create_directories(root_ + "/sys/fs/cgroup");
  }

  std::string root_;
};

TEST_F(LimitsTest, KnowTheMachinesMemoryWithoutAnyCgroup) {
  const auto limits = detect(CGROUP2_SUPER_MAGIC);
  ASSERT_EQ(1U, limits.size());
  EXPECT_EQ("MemTotal", limits[0].source);
  EXPECT_EQ(gib(8), limits[0].limit);
}

TEST_F(LimitsTest, TakeTheSmallestOnTheWayUpInVersion2) {
  mount_v2("/app/inner");
  write("/sys/fs/cgroup/app/memory.max", "2147483648\n");
  write("/sys/fs/cgroup/app/inner/memory.max", "max\n");
  write("/sys/fs/cgroup/app/inner/memory.high", "3221225472\n");
  const auto limits = detect(CGROUP2_SUPER_MAGIC);
  ASSERT_EQ(3U, limits.size());
  EXPECT_EQ(gib(2), limits[0].limit);
  EXPECT_EQ("cgroup v2 " + root_ + "/sys/fs/cgroup/app/memory.max", limits[0].source);
  EXPECT_EQ(gib(3), limits[1].limit);
}

TEST_F(LimitsTest, FindVersion1AndIgnoreItsWordForNoLimit) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/docker/abc\n0::/\n");
  write("/proc/self/mountinfo",
        "31 22 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 22 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  const auto limits = detect(CGROUP_SUPER_MAGIC);
  ASSERT_EQ(2U, limits.size());
  EXPECT_EQ(gib(1), limits[0].limit);
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(1U, detect(CGROUP_SUPER_MAGIC).size());
}

TEST_F(LimitsTest, FallBackToTheMountWhenThePathIsTheHosts) {
  mount_v2("/kubepods/pod1/container");
  write("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(mib(512), detect(CGROUP2_SUPER_MAGIC)[0].limit);
}

TEST_F(LimitsTest, DoNotBelieveAFolderThatOnlyLooksLikeACgroup) {
  mount_v2("/app");
  write("/sys/fs/cgroup/app/memory.max", "4096\n");
  const auto limits = detect_limits(root_).value();  // asks the real file system for its magic
  ASSERT_EQ(1U, limits.size());
  EXPECT_EQ("MemTotal", limits[0].source);
}

TEST_F(LimitsTest, HaveAsManyCoresAsTheSmallestQuotaOfVersion2Pays) {
  mount_v2("/app/inner");
  const auto cores = [this] { return detail::detect_cores(8, root_, magic_reader(CGROUP2_SUPER_MAGIC)); };
  EXPECT_EQ(8U, cores().cores);
  write("/sys/fs/cgroup/app/cpu.max", "350000 100000\n");
  write("/sys/fs/cgroup/app/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(3U, cores().cores) << "rounded down";
  EXPECT_EQ("cgroup v2 " + root_ + "/sys/fs/cgroup/app", cores().source);
  write("/sys/fs/cgroup/app/inner/cpu.max", "20000 100000\n");
  EXPECT_EQ(1U, cores().cores) << "at least one";
  write("/sys/fs/cgroup/app/inner/cpu.max", "5000000 100000\n");
  write("/sys/fs/cgroup/app/cpu.max", "");
  EXPECT_EQ(8U, cores().cores) << "more than there are";
}

TEST_F(LimitsTest, HaveAsManyCoresAsTheQuotaOfVersion1Pays) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n");
  write("/proc/self/mountinfo",
        "31 22 0:27 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 22 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const auto cores = [this] { return detail::detect_cores(8, root_, magic_reader(CGROUP_SUPER_MAGIC)); };
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(8U, cores().cores);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(2U, cores().cores);
}

TEST_F(LimitsTest, SayWhenNothingCanBeFound) {
  fs::remove(root_ + "/proc/meminfo");
  EXPECT_EQ("no_memory_limit", detect_limits(root_).status().reason());
}

TEST_F(LimitsTest, FindTheFileThatCountsKills) {
  mount_v2("/app");
  write("/sys/fs/cgroup/app/memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n");
  EXPECT_EQ(root_ + "/sys/fs/cgroup/app/memory.events",
            detail::oom_kill_file(root_, magic_reader(CGROUP2_SUPER_MAGIC)));
  EXPECT_EQ(2U, detail::read_number("low 0\noom 1\noom_kill 2\n", "oom_kill"));
  EXPECT_EQ("", detail::oom_kill_file(root_, detail::read_magic));
}

TEST(Limits, AreFoundOnThisMachine) {
  const auto limits = detect_limits().value();
  ASSERT_FALSE(limits.empty());
  EXPECT_GT(limits.front().limit, mib(64));
}

TEST(BudgetFrom, TakesAnExplicitAmountLiterally) {
  const std::vector<DetectedLimit> limits{{"MemTotal", mib(1000)}};
  EXPECT_EQ(mib(2000), budget_from(mib(2000), limits));
  EXPECT_EQ(mib(800), budget_from(Bytes(), limits));
  EXPECT_EQ(mib(500), budget_from(Bytes(), limits, 0.5));
}

}  // namespace
}  // namespace tonnage::memory
