// SPDX-License-Identifier: Apache-2.0
// The planner's working memory: everything plan_lane touches, sized once.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>

#include "planner/plan.h"

namespace tonnage::planner {

// Times are nanoseconds. kFar stands for "never"; a window of them still adds up without wrapping.
inline constexpr std::int64_t kFar = std::int64_t{1} << 52;

// Deadlines are counted over the earliest so many.
inline constexpr std::size_t kMostUrgent = 64;

// A row that can run now. Sorted by `group`, then `key`; rows of equal key stay in the order of their
// arrival.
struct Row {
  std::uint32_t key = 0;     // padded length; the exact length or the bucket where only equals may meet
  std::uint32_t column = 0;  // of the cost table
  std::uint32_t padded = 0;
  std::uint32_t units = 1;
  std::uint32_t group = 0;
  std::uint16_t index = 0;    // in the LaneView: smaller is older
  std::uint16_t segment = 0;  // first row that may share a batch with this one
  std::int64_t alone = 0;     // predicted time by itself
  std::int64_t left = 0;      // until its deadline
  std::int64_t age = 0;
};

// A contiguous run of sorted rows [begin, end), padded to its last row.
struct Group {
  std::uint16_t begin = 0;
  std::uint16_t end = 0;
  std::uint16_t oldest = 0;
  std::uint32_t units = 0;
  std::int64_t time = 0;
  std::int64_t left = kFar;  // until the earliest deadline
  std::int64_t age = 0;      // of the oldest row
};

// A row with a deadline. Times are drifted.
struct Urgent {
  std::int64_t left = 0;
  std::int64_t latest = 0;  // start, so that it ends in time by itself
  std::int64_t pace = 0;
  std::uint16_t row = 0;
};

enum class Class : std::uint8_t { kMustStartNow, kOverAge, kRate };

// What a plan is judged by; smaller is better, member by member.
struct Score {
  std::uint32_t late = 0;  // rows that miss their deadline when this group goes first
  Class urgency = Class::kRate;
  std::int64_t sum = 0;      // predicted times of the best partition that holds the group
  std::int64_t measure = 0;  // inside the class: slack; nothing; time per row
  std::uint16_t oldest = 0;
  std::uint32_t missing_units = 0;  // of two that tie, the larger group
  auto operator<=>(const Score&) const = default;
};

struct Choice {
  Group group;
  Score score;
};

struct PlanScratch::State {
  std::array<Row, kMaxWindow> rows;
  std::array<Row, kMaxWindow> spare;  // the other half of the radix sort
  std::size_t count = 0;
  std::int64_t until_hopeless = kFar;  // until the first row that waits for memory becomes hopeless
  bool some_wait = false;

  std::array<std::uint16_t, kMaxWindow> caps;  // largest group that ends with this row
  std::array<std::int64_t, kMaxWindow + 1> before;
  std::array<std::int64_t, kMaxWindow + 1> after;
  std::array<std::int64_t, kMaxBatchRows> times;  // of one column

  std::array<Urgent, kMaxWindow> urgent;        // by deadline
  std::array<Urgent, kMostUrgent> by_end;       // the watched ones, by their latest end at full pace
  std::array<std::int64_t, kMostUrgent> paces;  // a heap
  std::array<std::uint16_t, kMaxWindow + 1> watched_before;  // how many of them stand before a sorted row

  std::array<std::uint16_t, kMaxWindow> batch;
  std::array<std::uint16_t, kMaxWindow> drops;
  std::size_t dropped = 0;
};

// Predicted time as it will turn out: × drift.
inline std::int64_t drifted(std::int64_t time, double drift) {
  return static_cast<std::int64_t>(std::min(static_cast<double>(time) * drift, static_cast<double>(kFar)));
}

}  // namespace tonnage::planner
