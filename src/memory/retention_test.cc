// SPDX-License-Identifier: Apache-2.0
#include "memory/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"

namespace tonnage::memory {
namespace {

constexpr Bytes kReady = mib(100);

struct Batch {
  std::uint32_t rows = 1;
  std::uint32_t length = 32;
};
// Live bytes after the batch, given that it came as number `i`.
using Model = std::function<Bytes(const Batch& batch, std::uint64_t i)>;

struct Watched {
  explicit Watched(Model fake) : model(std::move(fake)) {}

  Retention::Change run(const Batch& batch) {
    now += milliseconds(10);
    rows += batch.rows;
    const auto change = retention.observe(batch.rows, batch.length, model(batch, batches++), now);
    if (change == Retention::Change::kNamed && named_after == 0) named_after = rows;
    return change;
  }
  void run(const std::vector<Batch>& batches_to_run) {
    for (const Batch& batch : batches_to_run) run(batch);
  }

  Model model;
  Retention retention{kReady};
  TimePoint now{};
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  std::uint64_t named_after = 0;  // rows; 0: never
};

Model keeps_per_row(Bytes bytes) {
  return [bytes, rows = std::uint64_t{0}](const Batch& batch, std::uint64_t) mutable {
    rows += batch.rows;
    return kReady + bytes * rows;
  };
}

// What a runtime keeps for each new shape, as stub model shape_cache does.
Model caches_by_shape() {
  return [kept = Bytes(), seen = std::set<std::pair<std::uint32_t, std::uint32_t>>()](const Batch& batch,
                                                                                      std::uint64_t) mutable {
    if (seen.emplace(batch.rows, batch.length).second) kept += kib(1) * batch.rows * batch.length;
    return kReady + kept;
  };
}

// The output of the last batch stays alive until the next one.
Bytes keeps_the_last(const Batch& batch, std::uint64_t) {
  return kReady + kib(4) * batch.rows * batch.length;
}

// The same work in three orders: what is resident or cached rises differently, and nothing is retained.
std::vector<std::vector<Batch>> three_orders() {
  Random random(3);
  std::vector<Batch> shuffled;
  for (int i = 0; i < 600; ++i) {
    shuffled.push_back({static_cast<std::uint32_t>(random.between(1, 8)),
                        static_cast<std::uint32_t>(random.between(1, 32)) * 32});
  }
  std::vector<Batch> up = shuffled;
  std::ranges::stable_sort(up, {}, [](const Batch& batch) { return batch.rows * batch.length; });
  return {up, {up.rbegin(), up.rend()}, shuffled};
}

std::vector<Batch> single_rows(std::uint64_t seed, std::uint32_t lengths, int count) {
  Random random(seed);
  std::vector<Batch> out;
  for (int i = 0; i < count; ++i)
    out.push_back({1, static_cast<std::uint32_t>(random.between(1, lengths)) * 32});
  return out;
}

TEST(Retention, NamesAModelThatKeepsAKilobytePerRequestWithinFiftyRequests) {
  Watched one_shape(keeps_per_row(Bytes(1000)));
  one_shape.run(single_rows(1, 1, 50));
  EXPECT_TRUE(one_shape.retention.is_named());
  const RetentionForecast forecast = one_shape.retention.forecast(Bytes(1'000'000));
  EXPECT_DOUBLE_EQ(1000, forecast.bytes_per_row);
  EXPECT_EQ(Bytes(50'000), forecast.kept);
  EXPECT_EQ(1000U, forecast.rows_left);
  EXPECT_NEAR(10, to_seconds(forecast.time_left), 0.1) << "a row each 10 ms";
}

TEST(Retention, NamesItWithinFiftyRequestsOfManyLengthsToo) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Watched watched(keeps_per_row(Bytes(1024)));
    watched.run(single_rows(seed, 32, 50));
    EXPECT_TRUE(watched.retention.is_named()) << "seed " << seed;
    EXPECT_NEAR(1024, watched.retention.forecast(mib(1)).bytes_per_row, 1);
  }
}

TEST(Retention, NamesWhatIsKeptWithEveryThirdRequest) {
  Watched watched([kept = Bytes()](const Batch&, std::uint64_t i) mutable {
    if (i % 3 == 0) kept += kib(9);
    return kReady + kept;
  });
  watched.run(single_rows(1, 1, 50));
  EXPECT_TRUE(watched.retention.is_named());
}

TEST(Retention, NamesABatchedModelAfterTwelveRepeatsOfAShape) {
  Watched watched(keeps_per_row(kib(2)));
  for (int i = 0; i < 13; ++i) watched.run(Batch{16, 128});
  EXPECT_EQ(16U * 13, watched.named_after);
}

TEST(Retention, SmallChangeIsNotNamed) {
  Watched watched(keeps_per_row(Bytes(900)));
  watched.run(single_rows(1, 1, 2000));
  EXPECT_EQ(0U, watched.named_after);
  EXPECT_EQ(Bytes(1'800'000), watched.retention.forecast(mib(1)).kept) << "it is shown all the same";
}

TEST(Retention, TheOrderOfTheWorkIsNoRetention) {
  for (const auto& order : three_orders()) {
    Watched flat([](const Batch&, std::uint64_t) { return kReady; });
    Watched last(keeps_the_last);
    Watched cache(caches_by_shape());
    for (int pass = 0; pass < 3; ++pass) {
      flat.run(order);
      last.run(order);
      cache.run(order);
    }
    EXPECT_EQ(0U, flat.named_after);
    EXPECT_EQ(0U, last.named_after);
    EXPECT_EQ(0U, cache.named_after);
  }
}

TEST(Retention, ALeakIsNamedInEachOrderOfTheWork) {
  for (const auto& order : three_orders()) {
    Watched watched(keeps_per_row(kib(1)));
    watched.run(order);
    watched.run(order);
    EXPECT_TRUE(watched.retention.is_named());
  }
}

TEST(Retention, ALeakIsNamedBesideAnOutputThatIsKept) {
  Watched watched([leak = keeps_per_row(kib(1))](const Batch& batch, std::uint64_t i) {
    return leak(batch, i) + keeps_the_last(batch, i);
  });
  watched.run(single_rows(1, 8, 60));
  EXPECT_TRUE(watched.retention.is_named());
}

TEST(Retention, OneLateStepIsNoRetention) {
  Watched watched([](const Batch&, std::uint64_t i) { return i < 30 ? kReady : kReady + mib(64); });
  watched.run(single_rows(1, 1, 400));
  EXPECT_EQ(0U, watched.named_after);
}

TEST(Retention, ACacheThatIsEmptiedNowAndThenIsNamedAtMostInItsFirstFilling) {
  Watched watched([](const Batch&, std::uint64_t i) { return kReady + kib(16) * (i % 40); });
  watched.run(single_rows(1, 1, 100));
  EXPECT_FALSE(watched.retention.is_named());
  const std::uint64_t before = watched.named_after;
  watched.run(single_rows(1, 1, 2000));
  EXPECT_FALSE(watched.retention.is_named());
  EXPECT_EQ(before, watched.named_after);
}

TEST(Retention, WhatValuesLeaveUntilTheNextBatchIsNoRetention) {
  for (const auto& order : three_orders()) {
    Watched watched([random = Random(9)](const Batch&, std::uint64_t) mutable {
      return kReady + Bytes(random.below(mib(1).count()));
    });
    for (int pass = 0; pass < 3; ++pass) watched.run(order);
    EXPECT_EQ(0U, watched.named_after);
  }
}

TEST(Retention, ACacheThatFillsIsNamedWhileItGrowsAndClearedWhenItStops) {
  Watched watched([kept = Bytes()](const Batch&, std::uint64_t i) mutable {
    if (i < 100) kept += kib(64);
    return kReady + kept;
  });
  watched.run(single_rows(1, 1, 90));
  EXPECT_TRUE(watched.retention.is_named());
  watched.run(single_rows(1, 1, 60));
  EXPECT_FALSE(watched.retention.is_named());
  EXPECT_EQ(Duration::max(), watched.retention.forecast(mib(1)).time_left);
}

}  // namespace
}  // namespace tonnage::memory
