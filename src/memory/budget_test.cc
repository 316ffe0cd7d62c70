// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"

namespace tonnage::memory {
namespace {

TEST(Charge, HoldsItsAmountInEveryAccountAboveUntilItGoesAway) {
  Budget host("host", mib(100));
  Account& workers = host.root().child("workers");
  Account& lease = workers.child("lease", mib(50));
  {
    const Charge charge = lease.charge(mib(30)).value();
    EXPECT_EQ(mib(30), lease.used());
    EXPECT_EQ(mib(30), workers.used());
    EXPECT_EQ(mib(30), host.root().used());
    EXPECT_EQ(mib(20), lease.available());
  }
  EXPECT_EQ(Bytes(), host.root().used());
  EXPECT_EQ(mib(30), host.root().peak());
}

TEST(Charge, IsAllOrNothingAndNamesTheFullAccount) {
  Budget host("host", mib(100));
  Account& ingress = host.root().child("ingress", mib(10));
  const Charge held = ingress.charge(mib(8)).value();
  const auto refused = ingress.charge(mib(3));
  EXPECT_EQ(Code::kOverloaded, refused.status().code());
  EXPECT_EQ("over_budget", refused.status().reason());
  EXPECT_NE(std::string::npos, refused.status().detail().find("host/ingress"));
  EXPECT_EQ(mib(8), host.root().used());
}

TEST(Charge, IsRefusedWhereOnlyTheRootIsFull) {
  Budget host("host", mib(10));
  Account& a = host.root().child("a");
  Account& b = host.root().child("b");
  const Charge held = a.charge(mib(9)).value();
  EXPECT_EQ(mib(1), b.available());
  EXPECT_FALSE(b.charge(mib(2)).is_ok());
  EXPECT_EQ(Bytes(), b.used());
}

TEST(Charge, SplitsMergesAndShrinksWithoutChangingTheSum) {
  Budget host("host", mib(100));
  Charge whole = host.root().charge(mib(10)).value();
  Charge part = whole.split(mib(4));
  EXPECT_EQ(mib(10), host.root().used());
  part.shrink_to(mib(1));
  EXPECT_EQ(mib(7), host.root().used());
  whole.merge(std::move(part));
  EXPECT_EQ(mib(7), whole.amount());
  whole.release();
  EXPECT_EQ(Bytes(), host.root().used());
}

TEST(Charge, GrowsAllOrNothing) {
  Budget host("host", mib(10));
  Charge charge = host.root().charge(mib(4)).value();
  EXPECT_TRUE(charge.grow_to(mib(9)).is_ok());
  EXPECT_EQ("over_budget", charge.grow_to(mib(11)).reason());
  EXPECT_EQ(mib(9), charge.amount());
  EXPECT_EQ(mib(9), host.root().used());
}

TEST(Charge, IsTransferredWithoutRoomAtTheCommonRoot) {
  Budget host("host", mib(10));
  Account& ingress = host.root().child("ingress");
  Account& envelopes = host.root().child("envelopes", mib(10));
  Charge charge = ingress.charge(mib(10)).value();  // the root is full
  EXPECT_TRUE(charge.transfer(envelopes).is_ok());
  EXPECT_EQ(Bytes(), ingress.used());
  EXPECT_EQ(mib(10), envelopes.used());
  EXPECT_EQ(mib(10), host.root().used());
  EXPECT_EQ(mib(10), host.root().peak());
}

TEST(Charge, StaysWhereItIsWhenATransferFails) {
  Budget host("host", mib(10));
  Account& ingress = host.root().child("ingress");
  Account& envelopes = host.root().child("envelopes", mib(1));
  Charge charge = ingress.charge(mib(2)).value();
  EXPECT_EQ("over_budget", charge.transfer(envelopes).reason());
  EXPECT_EQ(&ingress, charge.account());
  EXPECT_EQ(mib(2), ingress.used());
  EXPECT_EQ(Bytes(), envelopes.used());
}

TEST(Charge, MovesAreOwnedOnce) {
  Budget host("host", mib(10));
  Charge a = host.root().charge(mib(1)).value();
  Charge b = host.root().charge(mib(2)).value();
  a = std::move(b);  // the first is given back
  EXPECT_EQ(mib(2), host.root().used());
  EXPECT_EQ(Bytes(), b.amount());  // NOLINT(bugprone-use-after-move): moved-from means empty
  const Charge c = std::move(a);
  EXPECT_EQ(mib(2), c.amount());
  EXPECT_EQ(mib(2), host.root().used());
}

TEST(Account, RecordsAFactAboveItsLimitAndThenHasNothingToGive) {
  Budget host("host", mib(10));
  Charge fact = host.root().record(mib(15));
  EXPECT_EQ(mib(15), host.root().used());
  EXPECT_EQ(Bytes(), host.root().available());
  EXPECT_FALSE(host.root().charge(Bytes(1)).is_ok());
  EXPECT_TRUE(host.root().charge(Bytes()).is_ok());
  fact.shrink_to(mib(9));
  EXPECT_EQ(mib(1), host.root().available());
}

TEST(Account, GivesTheSameChildForTheSameName) {
  Budget host("host", mib(10));
  Account& first = host.root().child("a", mib(1));
  EXPECT_EQ(&first, &host.root().child("a", mib(5)));
  EXPECT_EQ(mib(1), first.limit());
  EXPECT_EQ(1U, host.root().children().size());
}

TEST(Account, ForgetsOnlyAChildWithoutUse) {
  Budget host("host", mib(10));
  Account& worker = host.root().child("worker");
  Account& base = worker.child("base");
  Charge charge = base.charge(mib(1)).value();
  {
    const ExpectBugs expected;
    const auto before = bug_count();
    host.root().remove_child("worker");
    EXPECT_EQ(before + 1, bug_count());
  }
  EXPECT_EQ(1U, host.root().children().size());
  charge.release();
  host.root().remove_child("worker");
  host.root().remove_child("never there");
  EXPECT_TRUE(host.root().children().empty());
}

TEST(Budget, TellsAReleaseOutsideItsLock) {
  Budget host("host", mib(10));
  int told = 0;
  Charge full = host.root().charge(mib(10)).value();
  host.on_release([&] {
    ++told;
    EXPECT_EQ(host.root().limit() - host.root().used(), host.root().available());  // deadlocks under the lock
  });
  full.shrink_to(mib(4));
  full.release();
  full.release();
  EXPECT_EQ(2, told);
  host.root().set_limit(mib(20));
  EXPECT_EQ(3, told);
}

TEST(Budget, TellsAShortageOfTheWholeOutsideItsLock) {
  Budget host("host", mib(10));
  Account& small = host.root().child("small", mib(1));
  int told = 0;
  host.on_shortage([&] {
    ++told;
    EXPECT_LE(host.root().available(), mib(10));  // deadlocks under the lock
  });
  Charge most = host.root().charge(mib(9)).value();
  EXPECT_FALSE(small.charge(mib(1) + Bytes(1)).is_ok());
  EXPECT_EQ(1, told) << "1 MiB is left of the whole, too";
  EXPECT_FALSE(most.grow_to(mib(11)).is_ok());
  EXPECT_EQ(2, told);
  const Charge fact = small.record(mib(2));
  EXPECT_EQ(3, told) << "one above the limit of all";
}

TEST(Budget, AFullAccountInARoomyOneIsNoShortageOfTheWhole) {
  Budget host("host", mib(10));
  bool is_told = false;
  host.on_shortage([&] { is_told = true; });
  EXPECT_FALSE(host.root().child("small", mib(1)).charge(mib(2)).is_ok());
  EXPECT_FALSE(is_told);
}

TEST(Budget, FailsTheNthChargeOnce) {
  Budget host("host", mib(10));
  host.fail_nth_charge(2);
  EXPECT_TRUE(host.root().charge(mib(1)).is_ok());
  EXPECT_EQ("over_budget", host.root().charge(mib(1)).status().reason());
  EXPECT_TRUE(host.root().charge(mib(1)).is_ok());
}

TEST(BudgetDeathTest, EndsTheProcessWhenAChargeOutlivesIt) {
  EXPECT_DEATH(
      {
        auto host = std::make_unique<Budget>("host", mib(10));
        const Charge leaked = host->root().charge(mib(1)).value();
        host.reset();
      },
      "went away");
}

TEST(Budget, AgreesUnderManyThreads) {
  Budget host("host", mib(8));
  std::array<Account*, 2> accounts{&host.root().child("a"), &host.root().child("b")};
  std::vector<std::jthread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&, seed] {
      Random random(seed);
      std::vector<Charge> held;
      for (int i = 0; i < 2000; ++i) {
        if (auto charge = accounts[random.below(2)]->charge(kib(random.below(512)))) {
          held.push_back(std::move(charge).value());
        } else if (!held.empty()) {
          held.erase(held.begin());
        }
        if (!held.empty()) (void)held.back().transfer(*accounts[random.below(2)]);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(Bytes(), host.root().used());
  EXPECT_LE(host.root().peak(), mib(8));
}

}  // namespace
}  // namespace tonnage::memory
