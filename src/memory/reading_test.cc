// SPDX-License-Identifier: Apache-2.0
#include "memory/reading.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "testkit/sanitizer.h"

namespace tonnage::memory {
namespace {

constexpr std::string_view kStatus =
    "Name:\tVmHWM: 1 kB\nState:\tS (sleeping)\nVmPeak:\t  9 kB\nVmHWM:\t  300 kB\nVmRSS:\t  210 kB\n"
    "RssAnon:\t  100 kB\nRssFile:\t   90 kB\nRssShmem:\t   20 kB\nVmData:\t  400 kB\nThreads:\t1\n";

TEST(ParseStatus, ReadsTheFiveLines) {
  const ProcessReading reading = parse_status(kStatus).value();
  EXPECT_EQ(kib(100), reading.anonymous);
  EXPECT_EQ(kib(90), reading.file);
  EXPECT_EQ(kib(20), reading.shared);
  EXPECT_EQ(kib(300), reading.resident_peak);
  EXPECT_EQ(kib(400), reading.data);
}

TEST(ParseStatus, RefusesAFileThatLacksALine) {
  std::string text(kStatus);
  text.replace(text.find("RssFile"), 7, "RssFill");
  EXPECT_EQ("bad_status", parse_status(text).status().reason());
  EXPECT_EQ("bad_status", parse_status("").status().reason());
  EXPECT_EQ("bad_status", parse_status("VmHWM:").status().reason());
}

TEST(ReadProcess, SeesMemoryThatIsTouched) {
  const ProcessReader reader = ProcessReader::open(::getpid()).value();
  const Bytes before = reader.read().value().anonymous;
  const std::vector<char> block(32 << 20, 'x');
  EXPECT_GE(reader.read().value().anonymous, before + mib(24));
  EXPECT_EQ('x', block.back());
}

TEST(ReadProcess, SeesAPeakThatIsOverSinceItWasReset) {
  if (testkit::kIsSanitized) GTEST_SKIP() << "not under a sanitizer (testkit/sanitizer.h)";
  { const std::vector<char> earlier(64 << 20, 'x'); }
  ASSERT_TRUE(reset_resident_peak(::getpid()).is_ok());
  const Bytes start = read_process(::getpid()).value().resident_peak;
  { const std::vector<char> block(32 << 20, 'x'); }
  const Bytes peak = read_process(::getpid()).value().resident_peak;
  EXPECT_GE(peak, start + mib(24));
  EXPECT_LE(peak, start + mib(48));
}

TEST(ReadProcess, SaysThatAProcessIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(0, ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT));
  const auto zombie = read_process(child);
  EXPECT_EQ("no_process", zombie.status().reason());
  const ProcessReader reader = ProcessReader::open(child).value();
  ASSERT_EQ(child, ::waitpid(child, nullptr, 0));
  EXPECT_EQ("no_process", reader.read().status().reason());
  EXPECT_EQ("no_process", read_process(child).status().reason());
  EXPECT_EQ("no_process", reset_resident_peak(child).reason());
}

}  // namespace
}  // namespace tonnage::memory
