// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace tonnage::telemetry {
namespace {

class LogFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "tonnage_log_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    options_.file = directory_ / "log";
    options_.clock = [this] { return now_; };
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string read(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::filesystem::path directory_;
  LogOptions options_;
  std::chrono::system_clock::time_point now_{std::chrono::milliseconds(1700000000123)};
};

TEST_F(LogFile, WritesOneJsonObjectPerLine) {
  auto log = make_log(options_);
  log->info("worker_ready",
            {{"worker", "a/1/0"}, {"took_ms", 12.5}, {"rows", std::uint64_t{3}}, {"ok", true}});
  log->error("odd", {{"text", "line\nbreak \"quoted\""}});
  log.reset();
  EXPECT_EQ(read(options_.file),
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"info\",\"event\":\"worker_ready\","
            "\"worker\":\"a/1/0\",\"took_ms\":12.5,\"rows\":3,\"ok\":true}\n"
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"error\",\"event\":\"odd\","
            "\"text\":\"line\\nbreak \\\"quoted\\\"\"}\n");
}

TEST_F(LogFile, LeavesOutWhatIsBelowItsLevel) {
  options_.level = Level::kWarning;
  auto log = make_log(options_);
  log->info("quiet", {});
  log->error("loud", {});
  log.reset();
  EXPECT_EQ(read(options_.file).find("quiet"), std::string::npos);
  EXPECT_NE(read(options_.file).find("loud"), std::string::npos);
}

TEST_F(LogFile, RepeatsAWarningOncePerSecondAndCountsTheRest) {
  auto log = make_log(options_);
  for (int i = 0; i < 10; ++i) log->warn("refused", {});
  log->warn("another", {});
  now_ += std::chrono::seconds(1);
  log->warn("refused", {});
  log.reset();
  const std::string text = read(options_.file);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_NE(text.find("\"event\":\"refused\",\"suppressed\":9}"), std::string::npos) << text;
}

TEST_F(LogFile, KeepsThreeRotatedFiles) {
  options_.rotate_bytes = 200;
  auto log = make_log(options_);
  for (int i = 0; i < 100; ++i) log->info("line", {{"number", std::int64_t{i}}});
  log.reset();
  EXPECT_NE(read(options_.file).find("\"number\":99"), std::string::npos);
  for (const char* suffix : {".1", ".2", ".3"}) {
    const auto size = std::filesystem::file_size(options_.file + suffix);
    EXPECT_GT(size, 0U);
    EXPECT_LE(size, 200U);
  }
  EXPECT_FALSE(std::filesystem::exists(options_.file + ".4"));
}

}  // namespace
}  // namespace tonnage::telemetry
