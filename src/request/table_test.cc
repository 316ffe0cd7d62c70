// SPDX-License-Identifier: Apache-2.0
#include "request/table.h"

#include <gtest/gtest.h>

namespace tonnage::request {
namespace {

Request named(std::string id) {
  Request request;
  request.id = std::move(id);
  return request;
}

TEST(RequestTable, FindsWhatWasAddedUntilItIsRemoved) {
  Table table;
  const RequestId a = table.add(named("a"));
  const RequestId b = table.add(named("b"));
  EXPECT_EQ("a", table.find(a)->id);
  EXPECT_EQ("b", table.find(b)->id);
  EXPECT_EQ("a", table.remove(a)->id);
  EXPECT_EQ(nullptr, table.find(a));
  EXPECT_FALSE(table.remove(a).has_value());
  EXPECT_EQ(1U, table.size());
}

TEST(RequestTable, AStaleIdDoesNotFindTheNextRequestInItsPlace) {
  Table table;
  const RequestId old = table.add(named("old"));
  (void)table.remove(old);
  const RequestId young = table.add(named("young"));
  EXPECT_EQ(old.index, young.index);
  EXPECT_EQ(nullptr, table.find(old));
  EXPECT_EQ("young", table.find(young)->id);
}

TEST(RequestTable, ADefaultIdAndAnIdFromElsewhereFindNothing) {
  Table table;
  EXPECT_EQ(nullptr, table.find({}));
  (void)table.add(named("a"));
  EXPECT_EQ(nullptr, table.find({}));
  EXPECT_EQ(nullptr, table.find({7, 1}));
}

TEST(RequestTable, KeepsRequestsInPlaceWhileItGrows) {
  Table table;
  const RequestId first = table.add(named("first"));
  const Request* before = table.find(first);
  for (int i = 0; i < 1000; ++i) (void)table.add(named("more"));
  EXPECT_EQ(before, table.find(first));
}

}  // namespace
}  // namespace tonnage::request
