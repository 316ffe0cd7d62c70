// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metrics.h"

#include <gtest/gtest.h>

#include <set>

#include "base/bug.h"
#include "telemetry/metric_names.h"

namespace tonnage::telemetry {
namespace {

TEST(Metrics, TheTableHasEachNameOnceWithHelpAndUnit) {
  std::set<std::string_view> names;
  for (const MetricInfo& info : metric_table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_FALSE(info.unit.empty()) << info.name;
    EXPECT_EQ(info.type == MetricType::kHistogram, info.buckets != Buckets::kNone) << info.name;
    if (info.name.starts_with("tonnage_") && info.type == MetricType::kCounter) {
      EXPECT_TRUE(info.name.ends_with("_total")) << info.name;
    }
  }
}

TEST(Metrics, TheSameNameAndLabelsGiveTheSameObject) {
  Registry registry;
  const Labels labels = {{"model", "a"}, {"version", "1"}};
  registry.counter(metric::kRows, labels).add(3);
  registry.counter(metric::kRows, labels).add(4);
  registry.counter(metric::kRows, {{"model", "b"}, {"version", "1"}}).add();
  const std::string text = registry.prometheus_text();
  EXPECT_NE(text.find("\ntonnage_rows_total{model=\"a\",version=\"1\"} 7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntonnage_rows_total{model=\"b\",version=\"1\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, WhatIsGoneLeavesNoSeriesBehind) {
  Registry registry;
  registry.counter(metric::kRows, {{"model", "a"}, {"version", "1"}}).add();
  registry.counter(metric::kRows, {{"model", "aa"}, {"version", "1"}}).add();
  registry.gauge(metric::kLease, {{"version", "1"}, {"model", "a"}}).set(1);
  registry.gauge(metric::kAccountUsed, {{"account", "host/workers/a"}}).set(1);
  registry.forget("model", "a");
  registry.forget_all(metric::kAccountUsed);
  registry.forget_all("no such metric");
  const std::string text = registry.prometheus_text();
  EXPECT_EQ(text.find("model=\"a\""), std::string::npos) << text;
  EXPECT_NE(text.find("model=\"aa\""), std::string::npos) << text;
  EXPECT_EQ(text.find("account="), std::string::npos) << text;
}

TEST(Metrics, NumbersAreWrittenWithoutExponents) {
  Registry registry;
  registry.gauge(metric::kAccountUsed, {{"account", "host"}}).set(68719476736.0);
  registry.gauge(metric::kTimeDrift, {}).set(0.00000125);
  const std::string text = registry.prometheus_text();
  EXPECT_NE(text.find("tonnage_account_used_bytes{account=\"host\"} 68719476736\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("tonnage_time_actual_over_predicted 0.00000125\n"), std::string::npos) << text;
}

TEST(Metrics, AHistogramCountsCumulativelyAndEndsWithInfinity) {
  Registry registry;
  Histogram& rows = registry.histogram(metric::kRowsPerBatch);
  for (const double v : {1.0, 2.0, 3.0, 1000.0}) rows.observe(v);
  const std::string text = registry.prometheus_text();
  for (const char* line :
       {"tonnage_batch_rows_bucket{le=\"1\"} 1\n", "tonnage_batch_rows_bucket{le=\"2\"} 2\n",
        "tonnage_batch_rows_bucket{le=\"4\"} 3\n", "tonnage_batch_rows_bucket{le=\"256\"} 3\n",
        "tonnage_batch_rows_bucket{le=\"+Inf\"} 4\n", "tonnage_batch_rows_sum 1006\n",
        "tonnage_batch_rows_count 4\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Metrics, LabelValuesAreEscaped) {
  Registry registry;
  registry.counter(metric::kRows, {{"model", "a\"b\\c\nd"}}).add();
  EXPECT_NE(registry.prometheus_text().find(R"({model="a\"b\\c\nd"} 1)"), std::string::npos);
}

TEST(Metrics, AnUnlistedNameIsACountedBugAndIsNotWritten) {
  const ExpectBugs expected;
  const std::uint64_t before = bug_count();
  Registry registry;
  registry.counter("tonnage_invented_total").add();
  EXPECT_EQ(bug_count(), before + 1);
  EXPECT_EQ(registry.prometheus_text().find("invented"), std::string::npos);
}

TEST(Metrics, AListedNameOfAnotherTypeIsACountedBug) {
  const ExpectBugs expected;
  const std::uint64_t before = bug_count();
  Registry registry;
  registry.gauge(metric::kRows).set(1);
  EXPECT_EQ(bug_count(), before + 1);
  EXPECT_EQ(registry.prometheus_text(), "");
}

}  // namespace
}  // namespace tonnage::telemetry
