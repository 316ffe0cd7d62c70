// SPDX-License-Identifier: Apache-2.0
// The ledger: a tree of accounts, spent in move-only charges.
//
// Promises:
//  1. A charge holds its amount in its account and in every account above it, until it is given back
//     by its destructor, by shrink_to() or by release(); nobody has to remember.
//  2. charge() is all or nothing, along the whole chain; it never goes over a limit.
//  3. record() writes down a fact (memory that is in use whether we like it or not) and may go over a
//     limit; available() is then zero until it is below again.
//  4. merge() takes charges of the same account only; transfer() moves one to another account of the
//     same tree and never needs new room at their common root.
//  5. When the root goes away its use is exactly zero (checked).
// Does not: measure anything (memory/reading.h does) or decide who gets what (memory/lease.h).
// Threads: any; one lock per tree. Owns: the children of an account belong to the tree's Budget.
// Fails with: overloaded/over_budget (the account that is full is named).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/function.h"
#include "base/status.h"

namespace tonnage::memory {

class Account;

class [[nodiscard]] Charge {
 public:
  Charge() = default;  // holds nothing
  Charge(Charge&& other) noexcept;
  Charge& operator=(Charge&& other) noexcept;
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge();

  Bytes amount() const { return amount_; }
  const Account* account() const { return account_; }

  // Takes `part` out of this charge; part ≤ amount().
  Charge split(Bytes part);
  // Takes the whole of `other`, of the same account (or empty).
  void merge(Charge other);
  // Needs `to` ≥ amount(): the difference is charged, all or nothing.
  Status grow_to(Bytes to);
  // Gives back what is above `to`.
  void shrink_to(Bytes to);
  void release();
  // Moves the charge to `to`, in the same tree. On an error it stays where it is.
  Status transfer(Account& to);

 private:
  friend class Account;
  Charge(Account* account, Bytes amount) : account_(account), amount_(amount) {}
  Account* account_ = nullptr;
  Bytes amount_;
};

class Account {
  struct Tree;
  struct State;

 public:
  explicit Account(std::unique_ptr<State> state);  // by Budget and child() alone: State is private
  ~Account();
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  const std::string& name() const;
  Bytes limit() const;  // Bytes::max() where only the accounts above limit it
  Bytes used() const;
  Bytes peak() const;
  // What charge() would grant now: the least room along the chain to the root.
  Bytes available() const;
  // By how much recorded facts exceed a limit, here or above; zero as a rule.
  Bytes overdraft() const;

  Result<Charge> charge(Bytes amount);
  Charge record(Bytes amount);
  void set_limit(Bytes limit);

  // The child lives as long as the tree. Names are unique among siblings; a second call with the
  // same name gives the same account.
  Account& child(std::string_view name, Bytes limit = Bytes::max());
  // Forgets a child whose use is zero (a worker that is gone).
  void remove_child(std::string_view name);
  std::vector<const Account*> children() const;

 private:
  friend class Charge;
  friend class Budget;
  std::unique_ptr<State> state_;
};

// The root of one device or of the host.
class Budget {
 public:
  Budget(std::string name, Bytes limit);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  Account& root();
  // Called after memory came back, outside the lock, on the thread that gave it back.
  void on_release(UniqueFunction<void()> fn);
  // Called after the root had no room for a charge, or a recorded fact went over its limit; as above, on
  // the thread that asked.
  void on_shortage(UniqueFunction<void()> fn);
  // For tests: the n-th charge from now (1 = the next) fails, once.
  void fail_nth_charge(int n);

 private:
  std::unique_ptr<Account> root_;
};

}  // namespace tonnage::memory
