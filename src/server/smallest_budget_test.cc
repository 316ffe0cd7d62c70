// SPDX-License-Identifier: Apache-2.0
#include "server/smallest_budget.h"

#include <gtest/gtest.h>

#include "memory/lease.h"

namespace tonnage::server {
namespace {

TEST(SmallestBudget, HoldsLoadingOrTheModelWithItsRowWhicheverIsMore) {
  SmallestBudget small{.front = mib(10),
                       .loading = mib(40),
                       .weights = mib(20),
                       .base = mib(30),
                       .shared = mib(1),
                       .row = mib(9),
                       .envelope = mib(2),
                       .length = 512};
  EXPECT_EQ(mib(10 + 1 + 20 + 30 + 9 + 2), small.total());
  small.loading = mib(100);
  EXPECT_EQ(mib(10 + 1 + 100), small.total());
  EXPECT_EQ(0U, small.to_string().find("111.0 MiB: front 10.0 MiB")) << small.to_string();
}

TEST(SmallestBudget, ALeaseIsTheLeastInWhichAWorkerMayBeginTheGrant) {
  for (const double factor : {1.0, 1.5}) {
    for (const Bytes grant : {kib(4), mib(3), mib(700)}) {
      memory::Budget budget("host", lease_for(grant, Bytes(), factor));
      const memory::Lease fits(budget.root(), Bytes(), Bytes(), factor);
      EXPECT_GE(fits.largest_grant(), grant);
      budget.root().set_limit(saturating_sub(budget.root().limit(), mib(1)));
      EXPECT_LT(fits.largest_grant(), grant);
    }
  }
}

}  // namespace
}  // namespace tonnage::server
