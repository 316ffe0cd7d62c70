// SPDX-License-Identifier: Apache-2.0
#include "lane/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace tonnage::lane {
namespace {

constexpr TimePoint kStart{seconds(100)};

QueuedRow row_of(std::uint32_t request, std::uint32_t row = 0) {
  return {.request = {.index = request, .generation = 1},
          .row = row,
          .length = 10,
          .enqueued = kStart,
          .deadline = kNever,
          .work = milliseconds(10)};
}
std::vector<QueuedRow> rows_of(std::uint32_t request, std::uint32_t count) {
  std::vector<QueuedRow> rows;
  for (std::uint32_t i = 0; i < count; ++i) rows.push_back(row_of(request, i));
  return rows;
}
std::vector<std::uint32_t> requests_in(std::span<const QueuedRow> rows) {
  std::vector<std::uint32_t> ids;
  for (const QueuedRow& row : rows) ids.push_back(row.request.index);
  return ids;
}
using Ids = std::vector<std::uint32_t>;

TEST(Lane, RefusesWhenFullAndKeepsNothing) {
  Lane lane({.max_rows = 4, .max_work = seconds(30)});
  ASSERT_TRUE(lane.push(rows_of(1, 3)).is_ok());
  const Status refused = lane.push(rows_of(2, 2));
  EXPECT_EQ(Code::kOverloaded, refused.code());
  EXPECT_EQ("lane_full", refused.reason());
  EXPECT_TRUE(refused.retry_after_seconds().has_value());
  EXPECT_EQ(3U, lane.rows());
  EXPECT_EQ(milliseconds(30), lane.work());
  EXPECT_TRUE(lane.push(rows_of(3, 1)).is_ok());
}

TEST(Lane, IsBoundedInPredictedWork) {
  Lane lane({.max_rows = 4096, .max_work = milliseconds(50)});
  ASSERT_TRUE(lane.push(rows_of(1, 5)).is_ok());
  EXPECT_EQ("lane_full", lane.push(rows_of(2, 1)).reason());
  EXPECT_EQ(5U, lane.rows());
}

TEST(Lane, TellsWhenARefusedClientMayComeBack) {
  Lane lane({.max_rows = 4096, .max_work = seconds(2)});
  QueuedRow heavy = row_of(1);
  heavy.work = seconds(2);
  ASSERT_TRUE(lane.push(std::array{heavy}).is_ok());
  heavy.work = milliseconds(3400);
  EXPECT_EQ(4, lane.push(std::array{heavy}).retry_after_seconds());
}

TEST(Lane, LetsALongRowCrossTheWorkBoundLikeAShortOne) {
  Lane lane({.max_rows = 4096, .max_work = milliseconds(50)});
  ASSERT_TRUE(lane.push(rows_of(1, 4)).is_ok());
  QueuedRow heavy = row_of(3);
  heavy.work = seconds(1);
  EXPECT_TRUE(lane.push(std::array{heavy}).is_ok());
  EXPECT_EQ("lane_full", lane.push(rows_of(2, 1)).reason());
}

TEST(Lane, OrdersByPriorityThenArrivalAndPutsRowsWithoutAWishLast) {
  Lane lane({});
  for (const auto& [request, priority] : {std::pair{1U, 0}, {2U, 2}, {3U, 1}, {4U, 2}, {5U, 255}}) {
    QueuedRow row = row_of(request);
    row.priority = static_cast<std::uint8_t>(priority);
    ASSERT_TRUE(lane.push(std::array{row}).is_ok());
  }
  EXPECT_EQ((Ids{3, 2, 4, 5, 1}), requests_in(lane.window(10)));
  EXPECT_EQ((Ids{3, 2}), requests_in(lane.window(2)));
}

TEST(Lane, GivesARowBackItsOldPlace) {
  Lane lane({.max_rows = 3});
  for (std::uint32_t request = 1; request <= 3; ++request) {
    QueuedRow row = row_of(request);
    row.enqueued = kStart + milliseconds(request);
    ASSERT_TRUE(lane.push(std::array{row}).is_ok());
  }
  lane.window(3);
  const auto taken = lane.take(std::array<std::uint16_t, 2>{0, 1});
  QueuedRow late = row_of(4);
  late.enqueued = kStart + milliseconds(9);
  ASSERT_TRUE(lane.push(std::array{late}).is_ok());
  lane.put_back(taken);
  EXPECT_EQ((Ids{1, 2, 3, 4}), requests_in(lane.window(10)));
}

TEST(Lane, TakesABatchAndThenTheDropsOfTheSameWindow) {
  Lane lane({});
  for (std::uint32_t request = 0; request < 6; ++request) ASSERT_TRUE(lane.push(rows_of(request, 1)).is_ok());
  lane.window(6);
  EXPECT_EQ((Ids{4, 1}), requests_in(lane.take(std::array<std::uint16_t, 2>{4, 1})));
  EXPECT_EQ((Ids{0, 5}), requests_in(lane.take(std::array<std::uint16_t, 3>{0, 4, 5})));
  EXPECT_EQ((Ids{2, 3}), requests_in(lane.window(6)));
}

TEST(Lane, NeverTakesARowThatMovedIntoAnOldPlace) {
  Lane lane({});
  ASSERT_TRUE(lane.push(rows_of(1, 1)).is_ok());
  lane.window(1);
  lane.remove({.index = 1, .generation = 1});
  ASSERT_TRUE(lane.push(rows_of(2, 1)).is_ok());
  EXPECT_TRUE(lane.take(std::array<std::uint16_t, 1>{0}).empty());
  EXPECT_EQ(1U, lane.rows());
}

TEST(Lane, RemovesAllRowsOfARequestThatLeft) {
  Lane lane({});
  ASSERT_TRUE(lane.push(rows_of(1, 2)).is_ok());
  ASSERT_TRUE(lane.push(rows_of(2, 3)).is_ok());
  ASSERT_TRUE(lane.push(rows_of(1, 2)).is_ok());
  EXPECT_EQ(4U, lane.remove({.index = 1, .generation = 1}));
  EXPECT_EQ(0U, lane.remove({.index = 1, .generation = 1}));
  EXPECT_EQ(0U, lane.remove({.index = 2, .generation = 2})) << "another generation is another request";
  EXPECT_EQ((Ids{2, 2, 2}), requests_in(lane.window(10)));
  EXPECT_EQ(milliseconds(30), lane.work());
}

TEST(Lane, CountsAnIndexOutsideTheWindowAsABug) {
  const ExpectBugs expected;
  Lane lane({});
  ASSERT_TRUE(lane.push(rows_of(1, 2)).is_ok());
  lane.window(1);
  const auto before = bug_count();
  EXPECT_TRUE(lane.take(std::array<std::uint16_t, 1>{1}).empty());
  EXPECT_EQ(before + 1, bug_count());
}

}  // namespace
}  // namespace tonnage::lane
