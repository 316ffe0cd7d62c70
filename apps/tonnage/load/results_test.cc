// SPDX-License-Identifier: Apache-2.0
#include "load/results.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "load/arrivals.h"
#include "load/report.h"

namespace tonnage::load {
namespace {

Sample sample(std::uint32_t tokens, int status, std::string reason, Duration latency = milliseconds(10)) {
  Sample made;
  made.tokens = tokens;
  made.length_class = class_of(tokens);
  made.status = status;
  made.reason = std::move(reason);
  made.latency = latency;
  return made;
}

TEST(Results, CountAnswersAndRefusalsByReason) {
  Results results(milliseconds(20));
  results.add(sample(10, 200, "ok"));
  results.add(sample(10, 200, "ok", milliseconds(50)));
  results.add(sample(700, 503, "lane_full"));
  results.add(sample(200, 0, "connection_lost"));
  EXPECT_EQ(4U, results.sent());
  EXPECT_EQ(2U, results.answered());
  EXPECT_EQ(2U, results.refused());
  EXPECT_EQ(1U, results.good());
  EXPECT_EQ(3U, results.distinct_lengths());
  EXPECT_EQ(1U, results.refusals().at("lane_full"));
  EXPECT_EQ(2U, results.of_class(0).answered);
  EXPECT_EQ(0U, results.of_class(2).answered);
}

TEST(Results, WarmUpIsAnsweredAndNotCounted) {
  Results results(Duration(0));
  Sample early = sample(10, 200, "ok");
  early.is_warmup = true;
  results.add(early);
  EXPECT_EQ(0U, results.sent());
  EXPECT_EQ(1U, results.answered_between(Duration(0), seconds(1)));
}

TEST(Report, IsOneJsonObjectWithTheKeysThatScriptsRead) {
  Results results(Duration(0));
  results.add(sample(10, 200, "ok"));
  results.add(sample(10, 503, "odd \"reason\""));
  DriveOptions options;
  const auto json = nlohmann::json::parse(json_object(results, RunTimes{seconds(1), seconds(2)}, options));
  EXPECT_EQ(1, json["answered"]);
  EXPECT_EQ(1, json["refused_by"]["odd \"reason\""]);
  EXPECT_DOUBLE_EQ(0.5, json["rps"]);
  EXPECT_EQ(1.0, json["window_rps"]);
  EXPECT_NEAR(10.0, json["latency_ms"]["short"]["p50"].get<double>(), 0.2);
  EXPECT_EQ(64, json["outstanding"]);
  EXPECT_NE(std::string::npos,
            table(results, RunTimes{seconds(1), seconds(2)}, options).find("not answered"));
}

TEST(Report, SavesLabelsScoresAndErrors) {
  Sample made = sample(10, 200, "ok");
  made.body = R"({"predictions":[{"label":"positive","score":0.75}]})";
  auto line = nlohmann::json::parse(save_line(made, 3));
  EXPECT_EQ(3, line["request"]);
  EXPECT_EQ("positive", line["label"]);
  EXPECT_DOUBLE_EQ(0.75, line["score"]);
  made.text = 7;
  made.body = R"({"outputs":[{"name":"scores","data":[0.25,0.75]}]})";
  line = nlohmann::json::parse(save_line(made, 0));
  EXPECT_EQ(2U, line["scores"].size());
  EXPECT_EQ(7, line["text"]);
  made = sample(10, 413, "never_fits");
  made.body = R"({"error":"too long"})";
  EXPECT_EQ("too long", nlohmann::json::parse(save_line(made, 0))["error"]);
  made.body = "not json";
  EXPECT_FALSE(nlohmann::json::parse(save_line(made, 0)).contains("error"));
}

TEST(Arrivals, KeepTheirRateAndNeverFall) {
  Arrivals poisson(1000, Spacing::kPoisson, 5);
  Duration last{0};
  double squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const Duration at = poisson.next();
    EXPECT_GE(at, last);
    squares += to_seconds(at - last) * to_seconds(at - last) * 1e6;
    last = at;
  }
  EXPECT_NEAR(20.0, to_seconds(last), 0.6);
  EXPECT_NEAR(2.0, squares / 20000, 0.15);  // E[gap²] = 2 · mean²: exponential, not fixed
  Arrivals fixed(10, Spacing::kFixed, 5);
  EXPECT_EQ(Duration(milliseconds(100)), fixed.next());
  EXPECT_EQ(Duration(milliseconds(200)), fixed.next());
}

}  // namespace
}  // namespace tonnage::load
