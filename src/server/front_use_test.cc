// SPDX-License-Identifier: Apache-2.0
#include "server/front_use.h"

#include <gtest/gtest.h>

#include <vector>

namespace tonnage::server {
namespace {

constexpr TimePoint kStart{seconds(1000)};

TEST(FrontUse, FollowsTheReadingsDownAgainAfterABurst) {
  FrontUseTracker tracker;
  const auto base = [&](Bytes anonymous, Bytes transient, bool is_at_rest) {
    return tracker.read({anonymous, transient, Bytes(), is_at_rest}, kStart).base;
  };
  EXPECT_EQ(mib(20), base(mib(20), Bytes(), true));
  EXPECT_EQ(mib(50), base(mib(80), mib(30), false));
  EXPECT_EQ(mib(21), base(mib(21), Bytes(), true)) << "one burst is not for ever";
  EXPECT_EQ(Bytes(), base(mib(20), mib(30), false)) << "charged is not yet touched";
}

TEST(FrontUse, AsksPagesBackAtRestWhereMallocHasThemAndAtMostEachHalfMinute) {
  struct Row {
    int second;
    Bytes anonymous;
    Bytes free_in_heap;
    bool is_at_rest;
    bool trim;
    const char* why;
  };
  struct Story {
    std::vector<Row> rows;
  };
  const std::vector<Story> stories = {
      {{{0, mib(20), Bytes(), true, false, "the first reading is the measure"},
        {1, mib(36), mib(40), true, false, "few pages are not worth it"},
        {2, mib(60), mib(40), false, false, "somebody is served"},
        {3, mib(60), mib(16), true, false, "it is in use: malloc has little that is free"},
        {4, mib(60), mib(40), true, true, "kept after a burst"},
        {5, mib(22), mib(40), true, false, "they are gone"}}},
      {{{0, mib(20), Bytes(), true, false, "the measure"},
        {1, mib(60), mib(40), true, true, "kept after a burst"},
        {2, mib(60), mib(40), true, false, "the trim left them: they are in use, whatever malloc counts"},
        {40, mib(70), mib(40), true, false, "little more than what the trim left"},
        {41, mib(80), mib(40), true, true, "much more"}}},
      {{{0, mib(20), Bytes(), true, false, "the measure"},
        {1, mib(60), mib(40), true, true, "kept after a burst"},
        {2, mib(90), mib(70), false, false, "the next burst"},
        {3, mib(90), mib(70), true, false, "the last trim was two seconds ago"},
        {30, mib(90), mib(70), true, false, "and 29"},
        {31, mib(90), mib(70), true, true, "a burst does not become the floor"}}}};
  for (const Story& story : stories) {
    FrontUseTracker tracker;
    for (const Row& row : story.rows) {
      const FrontReading seen{row.anonymous, Bytes(), row.free_in_heap, row.is_at_rest};
      EXPECT_EQ(row.trim, tracker.read(seen, kStart + seconds(row.second)).trim) << row.why;
    }
  }
}

}  // namespace
}  // namespace tonnage::server
