// SPDX-License-Identifier: Apache-2.0
#include "report/profile_report.h"

#include <gtest/gtest.h>

namespace tonnage::app {
namespace {

server::Inspection two_points() {
  model::ModelSpec spec;
  spec.name = "m<1>";
  spec.route = "stub";
  spec.max_length = 64;
  spec.batching.max_rows = 8;
  server::Inspection seen;
  seen.spec = std::make_shared<const model::ModelSpec>(spec);
  seen.budget = mib(100);
  seen.grid = {
      {{1, 32}, mib(11), mib(12), milliseconds(1), true, cost::Sample{{1, 32}, mib(10), milliseconds(2)}},
      {{8, 64}, mib(200), mib(201), milliseconds(9), false, std::nullopt}};
  seen.largest = {{32, 8, 8}, {64, 0, 5}};
  return seen;
}

TEST(ProfileReport, JsonSaysWhatWasMeasuredAndHowFarThePredictionWasOff) {
  const std::string json = profile_json(two_points());
  EXPECT_NE(std::string::npos, json.find("\"measured\":1,\"peak_error_median\":0.100000"));
  EXPECT_NE(std::string::npos, json.find("\"measured_peak_bytes\":10485760,\"measured_time_ms\":2.000"));
  EXPECT_NE(std::string::npos, json.find("{\"length\":64,\"rows\":0,\"rows_with_one_more_gib\":5}"));
}

TEST(ProfileReport, TextNamesTheLargestBatchAndWhatOneMoreGibibyteBuys) {
  const std::string text = profile_text(two_points());
  EXPECT_NE(std::string::npos, text.find("8 (max_rows)"));
  EXPECT_NE(std::string::npos, text.find("none"));
  EXPECT_NE(std::string::npos, text.find("does not fit"));
}

TEST(ProfileReport, ThePageNeedsNoNetworkAndEscapesTheModelsName) {
  const std::string page = profile_html(two_points());
  EXPECT_EQ(std::string::npos, page.find("<1>"));
  EXPECT_EQ(std::string::npos, page.find("src="));
  EXPECT_EQ(std::string::npos, page.find("href="));
}

}  // namespace
}  // namespace tonnage::app
