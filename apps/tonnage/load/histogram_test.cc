// SPDX-License-Identifier: Apache-2.0
#include "load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace tonnage::load {
namespace {

TEST(Histogram, KnowsEveryQuantileToTwoPercent) {
  Histogram histogram;
  Random random(7);
  std::vector<double> values;
  for (int i = 0; i < 20000; ++i) {
    const auto micros = static_cast<std::int64_t>(std::exp(random.unit() * 18));
    values.push_back(static_cast<double>(micros));
    histogram.record(microseconds(micros));
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = values[static_cast<std::size_t>(std::ceil(share * 20000)) - 1];
    const double told = to_seconds(histogram.quantile(share)) * 1e6;
    EXPECT_GE(told, exact) << share;
    EXPECT_LE(told, exact * 1.016 + 1) << share;
  }
}

TEST(Histogram, KeepsTheLargestValueExactly) {
  Histogram histogram;
  for (const int millis : {1, 20, 12345}) histogram.record(milliseconds(millis));
  EXPECT_EQ(Duration(milliseconds(12345)), histogram.max());
  EXPECT_EQ(histogram.max(), histogram.quantile(1.0));
}

TEST(Histogram, EmptyAndOutOfRangeAreNotACrash) {
  Histogram histogram;
  EXPECT_EQ(Duration(0), histogram.quantile(0.5));
  histogram.record(Duration(-5));
  histogram.record(std::chrono::hours(100000));
  EXPECT_EQ(2U, histogram.count());
  EXPECT_EQ(Duration(0), histogram.quantile(0.5));
}

}  // namespace
}  // namespace tonnage::load
