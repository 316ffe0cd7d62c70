// SPDX-License-Identifier: Apache-2.0
#include "memory/accounts.h"

#include <gtest/gtest.h>

namespace tonnage::memory {
namespace {

std::int64_t sum(const WorkerAccounts& a) {
  return static_cast<std::int64_t>((a.libraries + a.weights + a.tensors + a.caches).count()) + a.remainder;
}

TEST(Accounts, EachByteHasOnePlace) {
  const WorkerAccounts seen = explain({.resident = mib(200),
                                       .libraries = mib(60),
                                       .weights = mib(80),
                                       .live_baseline = mib(81),
                                       .live = mib(85),
                                       .heap = mib(120),
                                       .heap_used = mib(97)});
  EXPECT_EQ(mib(60), seen.libraries);
  EXPECT_EQ(mib(80), seen.weights);
  EXPECT_EQ(mib(5), seen.tensors);
  EXPECT_EQ(mib(35), seen.caches);
  EXPECT_EQ(mib(12), seen.runtime);
  EXPECT_EQ(static_cast<std::int64_t>(mib(20).count()), seen.remainder);
  EXPECT_EQ(static_cast<std::int64_t>(mib(200).count()), sum(seen));
}

TEST(Accounts, WeightsThatTheAllocatorDoesNotSeeAreNoCache) {
  const WorkerAccounts seen = explain({.resident = mib(150),
                                       .libraries = mib(20),
                                       .weights = mib(100),
                                       .live_baseline = Bytes(),
                                       .live = mib(1),
                                       .heap = mib(110),
                                       .heap_used = mib(104)});
  EXPECT_EQ(mib(1), seen.tensors);
  EXPECT_EQ(mib(9), seen.caches);
  EXPECT_EQ(mib(3), seen.runtime);
  EXPECT_EQ(static_cast<std::int64_t>(mib(20).count()), seen.remainder);
}

TEST(Accounts, WhatIsCountedAndNotResidentMakesTheRemainderNegative) {
  const WorkerAccounts seen = explain({.resident = mib(50),
                                       .libraries = mib(40),
                                       .weights = mib(30),
                                       .live_baseline = mib(30),
                                       .live = mib(30)});
  EXPECT_EQ(-static_cast<std::int64_t>(mib(20).count()), seen.remainder);
  EXPECT_EQ(Bytes(), seen.caches) << "a worker that says nothing of its heap";
  EXPECT_EQ(static_cast<std::int64_t>(mib(50).count()), sum(seen));
}

}  // namespace
}  // namespace tonnage::memory
