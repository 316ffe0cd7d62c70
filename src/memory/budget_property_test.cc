// SPDX-License-Identifier: Apache-2.0
// Random sequences of ledger operations against a model that is a list of numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/random.h"
#include "memory/budget.h"

namespace tonnage::memory {
namespace {

constexpr std::size_t kAccounts = 5;

// Account 0 is the root; every other one hangs below its parent.
struct Model {
  std::array<std::size_t, kAccounts> parent{0, 0, 0, 1, 1};
  std::array<std::uint64_t, kAccounts> limit{};
  struct Held {
    std::size_t account;
    std::uint64_t amount;
  };
  std::vector<Held> held;

  bool is_inside(std::size_t account, std::size_t above) const {
    while (account != above && account != 0) account = parent[account];
    return account == above;
  }
  std::uint64_t used(std::size_t account) const {
    std::uint64_t sum = 0;
    for (const Held& h : held) sum += is_inside(h.account, account) ? h.amount : 0;
    return sum;
  }
  // Whether `amount` more fits in `account` and above, up to and without the first account that
  // also holds `except`.
  bool fits(std::size_t account, std::uint64_t amount, const std::size_t* except = nullptr) const {
    for (std::size_t a = account;; a = parent[a]) {
      if (except != nullptr && is_inside(*except, a)) return true;
      if (amount > 0 && used(a) + amount > limit[a]) return false;
      if (a == 0) return true;
    }
  }
};

class BudgetSequence {
 public:
  explicit BudgetSequence(std::uint64_t seed) : random_(seed), budget_("root", Bytes(1000)) {
    accounts_[0] = &budget_.root();
    model_.limit[0] = 1000;
    for (std::size_t i = 1; i < kAccounts; ++i) {
      model_.limit[i] = 200 + random_.below(900);
      accounts_[i] = &accounts_[model_.parent[i]]->child("a" + std::to_string(i), Bytes(model_.limit[i]));
    }
  }

  void step() {
    switch (random_.below(8)) {
      case 0:
      case 1: charge(); break;
      case 2: record(); break;
      case 3: split(); break;
      case 4: merge(); break;
      case 5: shrink(); break;
      case 6: transfer(); break;
      default: grow(); break;
    }
    for (std::size_t i = 0; i < kAccounts; ++i) ASSERT_EQ(model_.used(i), accounts_[i]->used().count());
  }

  void finish() {
    charges_.clear();
    for (const Account* account : accounts_) ASSERT_EQ(Bytes(), account->used());
  }

 private:
  std::size_t any_account() { return random_.below(kAccounts); }
  std::size_t any_charge() { return random_.below(charges_.size()); }
  void add(std::size_t account, std::uint64_t amount, Charge charge) {
    model_.held.push_back({account, amount});
    charges_.push_back(std::move(charge));
  }
  void drop(std::size_t i) {
    model_.held.erase(model_.held.begin() + static_cast<std::ptrdiff_t>(i));
    charges_.erase(charges_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void charge() {
    const std::size_t account = any_account();
    const std::uint64_t amount = random_.below(300);
    auto result = accounts_[account]->charge(Bytes(amount));
    ASSERT_EQ(model_.fits(account, amount), result.is_ok());
    if (result) add(account, amount, std::move(result).value());
  }
  void record() {
    const std::size_t account = any_account();
    const std::uint64_t amount = random_.below(60);
    add(account, amount, accounts_[account]->record(Bytes(amount)));
  }
  void split() {
    if (charges_.empty()) return;
    const std::size_t i = any_charge();
    const std::uint64_t part = random_.below(model_.held[i].amount + 1);
    model_.held[i].amount -= part;
    Charge piece = charges_[i].split(Bytes(part));
    add(model_.held[i].account, part, std::move(piece));
  }
  void merge() {
    if (charges_.empty()) return;
    const std::size_t i = any_charge();
    const std::size_t j = any_charge();
    if (i == j || model_.held[i].account != model_.held[j].account) return;
    model_.held[i].amount += model_.held[j].amount;
    charges_[i].merge(std::move(charges_[j]));
    drop(j);
  }
  void shrink() {
    if (charges_.empty()) return;
    const std::size_t i = any_charge();
    const std::uint64_t to = random_.below(model_.held[i].amount + 1);
    model_.held[i].amount = to;
    charges_[i].shrink_to(Bytes(to));
    if (to == 0) drop(i);
  }
  void transfer() {
    if (charges_.empty()) return;
    const std::size_t i = any_charge();
    const std::size_t to = any_account();
    const std::size_t from = model_.held[i].account;
    const bool fits = from == to || model_.fits(to, model_.held[i].amount, &from);
    ASSERT_EQ(fits, charges_[i].transfer(*accounts_[to]).is_ok());
    if (fits) model_.held[i].account = to;
  }
  void grow() {
    if (charges_.empty()) return;
    const std::size_t i = any_charge();
    const std::uint64_t more = random_.below(200);
    const bool fits = model_.fits(model_.held[i].account, more);
    ASSERT_EQ(fits, charges_[i].grow_to(Bytes(model_.held[i].amount + more)).is_ok());
    if (fits) model_.held[i].amount += more;
  }

  Random random_;
  Budget budget_;
  std::array<Account*, kAccounts> accounts_{};
  Model model_;
  std::vector<Charge> charges_;
};

TEST(BudgetProperty, AgreesWithANaiveModelAndEndsAtZero) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    BudgetSequence sequence(seed);
    for (int i = 0; i < 200; ++i) sequence.step();
    sequence.finish();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tonnage::memory
