// SPDX-License-Identifier: Apache-2.0
#include "memory/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <utility>

#include "base/guarded.h"

namespace tonnage::memory {

// Everything that changes lives in the tree's ledger, behind its one lock.
struct Account::Tree {
  struct Entry {
    std::string name;
    Entry* parent = nullptr;
    Bytes limit;
    Bytes used;
    Bytes peak;
    std::vector<std::unique_ptr<Account>> children;

    Bytes room() const { return saturating_sub(limit, used); }
  };
  using Entries = std::list<Entry>;  // addresses stay

  struct Ledger {
    Entries entries;
    int fail_in = 0;  // charges until one fails; 0 = none
    std::shared_ptr<UniqueFunction<void()>> on_release;
    std::shared_ptr<UniqueFunction<void()>> on_shortage;

    const Entry& root() const { return entries.front(); }
    bool is_chosen_to_fail() { return fail_in > 0 && --fail_in == 0; }
    // Checks, then adds, on every account from `entry` up to (not including) `end`.
    Status take(Entry* entry, const Entry* end, Bytes amount);
    static void add(Entry* entry, const Entry* end, Bytes amount);
    static void give_back(Entry* entry, const Entry* end, Bytes amount);
    void erase_subtree(Entries::iterator entry);
  };

  Guarded<Ledger> ledger;

  Status take(Entry* entry, Bytes amount);
  void give_back(Entry* entry, Bytes amount);
  // Takes the lock only to find the receiver: it is free to charge again.
  void tell(std::shared_ptr<UniqueFunction<void()>> Ledger::*whom);
  void tell_release() { tell(&Ledger::on_release); }
};

struct Account::State {
  std::unique_ptr<Tree> owned_tree;  // in the root only
  Tree* tree = nullptr;
  Tree::Entries::iterator entry;
};

namespace {

std::string path_of(const auto* entry) {
  std::string path = entry->name;
  for (const auto* above = entry->parent; above != nullptr; above = above->parent) {
    path.insert(0, above->name + "/");
  }
  return path;
}

Status over_budget(const auto* entry, Bytes amount) {
  return Status(Code::kOverloaded, "over_budget",
                fmt::format("account {} has {} of {} free, {} were asked for", path_of(entry),
                            format_bytes(entry->room()), format_bytes(entry->limit), format_bytes(amount)))
      .with_retry_after(1);
}

// The lowest account that is above (or is) both.
const auto* common_root(const auto* a, const auto* b) {
  for (; a != nullptr; a = a->parent) {
    for (const auto* above = b; above != nullptr; above = above->parent) {
      if (above == a) return a;
    }
  }
  TONNAGE_CHECK(false, "a charge was transferred to another tree");
  return a;
}

}  // namespace

Status Account::Tree::Ledger::take(Entry* entry, const Entry* end, Bytes amount) {
  if (is_chosen_to_fail()) return over_budget(entry, amount);
  for (const Entry* e = entry; e != end; e = e->parent) {
    if (amount > e->room()) return over_budget(e, amount);
  }
  add(entry, end, amount);
  return Status::ok();
}

void Account::Tree::Ledger::add(Entry* entry, const Entry* end, Bytes amount) {
  for (Entry* e = entry; e != end; e = e->parent) {
    TONNAGE_CHECK(amount <= Bytes::max() - e->used, "an account overflowed");
    e->used += amount;
    e->peak = std::max(e->peak, e->used);
  }
}

void Account::Tree::Ledger::give_back(Entry* entry, const Entry* end, Bytes amount) {
  for (Entry* e = entry; e != end; e = e->parent) e->used -= amount;
}

void Account::Tree::Ledger::erase_subtree(Entries::iterator entry) {
  for (const auto& child : entry->children) erase_subtree(child->state_->entry);
  entries.erase(entry);
}

void Account::Tree::give_back(Entry* entry, Bytes amount) {
  if (amount == Bytes()) return;
  {
    auto held = ledger.lock();
    Ledger::give_back(entry, nullptr, amount);
  }
  tell_release();
}

Status Account::Tree::take(Entry* entry, Bytes amount) {
  Status taken;
  bool is_short = false;
  {
    auto held = ledger.lock();
    taken = held->take(entry, nullptr, amount);
    is_short = !taken.is_ok() && amount > held->root().room();
  }
  if (is_short) tell(&Ledger::on_shortage);
  return taken;
}

void Account::Tree::tell(std::shared_ptr<UniqueFunction<void()>> Ledger::*whom) {
  std::shared_ptr<UniqueFunction<void()>> receiver;
  {
    auto held = ledger.lock();
    receiver = (*held).*whom;
  }
  if (receiver) (*receiver)();
}

// --- Charge

Charge::Charge(Charge&& other) noexcept
    : account_(std::exchange(other.account_, nullptr)), amount_(std::exchange(other.amount_, Bytes())) {}

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    release();
    account_ = std::exchange(other.account_, nullptr);
    amount_ = std::exchange(other.amount_, Bytes());
  }
  return *this;
}

Charge::~Charge() { release(); }

Charge Charge::split(Bytes part) {
  TONNAGE_CHECK(part <= amount_, "more was split off a charge than it holds");
  amount_ -= part;
  return {account_, part};
}

void Charge::merge(Charge other) {
  if (other.account_ == nullptr) return;
  if (account_ == nullptr) account_ = other.account_;
  TONNAGE_CHECK(account_ == other.account_, "charges of two accounts were merged");
  amount_ += std::exchange(other.amount_, Bytes());
}

Status Charge::grow_to(Bytes to) {
  TONNAGE_CHECK(account_ != nullptr, "a charge without an account cannot grow");
  TONNAGE_CHECK(to >= amount_, "grow_to below the amount");
  TONNAGE_TRY(account_->state_->tree->take(&*account_->state_->entry, to - amount_));
  amount_ = to;
  return Status::ok();
}

void Charge::shrink_to(Bytes to) {
  if (to >= amount_) return;
  const Bytes back = amount_ - to;
  amount_ = to;
  account_->state_->tree->give_back(&*account_->state_->entry, back);
}

void Charge::release() {
  // An empty charge may outlive its account, so it does not touch it.
  shrink_to(Bytes());
  account_ = nullptr;
}

Status Charge::transfer(Account& to) {
  if (account_ == nullptr || account_ == &to) {
    account_ = &to;
    return Status::ok();
  }
  Account::Tree& tree = *to.state_->tree;
  TONNAGE_CHECK(&tree == account_->state_->tree, "a charge was transferred to another tree");
  {
    auto held = tree.ledger.lock();
    auto* from_entry = &*account_->state_->entry;
    auto* to_entry = &*to.state_->entry;
    const auto* common = common_root(from_entry, to_entry);
    TONNAGE_TRY(held->take(to_entry, common, amount_));
    Account::Tree::Ledger::give_back(from_entry, common, amount_);
  }
  account_ = &to;
  tree.tell_release();
  return Status::ok();
}

// --- Account

Account::Account(std::unique_ptr<State> state) : state_(std::move(state)) {}
Account::~Account() = default;

const std::string& Account::name() const { return state_->entry->name; }

Bytes Account::limit() const {
  auto held = state_->tree->ledger.lock();
  return state_->entry->limit;
}

Bytes Account::used() const {
  auto held = state_->tree->ledger.lock();
  return state_->entry->used;
}

Bytes Account::peak() const {
  auto held = state_->tree->ledger.lock();
  return state_->entry->peak;
}

Bytes Account::available() const {
  auto held = state_->tree->ledger.lock();
  Bytes least = Bytes::max();
  for (const Tree::Entry* e = &*state_->entry; e != nullptr; e = e->parent)
    least = std::min(least, e->room());
  return least;
}

Bytes Account::overdraft() const {
  auto held = state_->tree->ledger.lock();
  Bytes most;
  for (const Tree::Entry* e = &*state_->entry; e != nullptr; e = e->parent)
    most = std::max(most, saturating_sub(e->used, e->limit));
  return most;
}

Result<Charge> Account::charge(Bytes amount) {
  TONNAGE_TRY(state_->tree->take(&*state_->entry, amount));
  return Charge(this, amount);
}

Charge Account::record(Bytes amount) {
  bool is_short = false;
  {
    auto held = state_->tree->ledger.lock();
    Tree::Ledger::add(&*state_->entry, nullptr, amount);
    is_short = held->root().used > held->root().limit;
  }
  if (is_short) state_->tree->tell(&Tree::Ledger::on_shortage);
  return {this, amount};
}

void Account::set_limit(Bytes limit) {
  {
    auto held = state_->tree->ledger.lock();
    state_->entry->limit = limit;
  }
  state_->tree->tell_release();  // a higher limit is room, too
}

Account& Account::child(std::string_view name, Bytes limit) {
  auto held = state_->tree->ledger.lock();
  Tree::Entry& mine = *state_->entry;
  for (const auto& known : mine.children) {
    if (known->name() == name) return *known;
  }
  auto state = std::make_unique<State>();
  state->tree = state_->tree;
  state->entry =
      held->entries.insert(held->entries.end(), Tree::Entry{std::string(name), &mine, limit, {}, {}, {}});
  mine.children.push_back(std::make_unique<Account>(std::move(state)));
  return *mine.children.back();
}

void Account::remove_child(std::string_view name) {
  auto held = state_->tree->ledger.lock();
  auto& children = state_->entry->children;
  const auto found = std::ranges::find_if(children, [&](const auto& child) { return child->name() == name; });
  if (found == children.end()) return;
  if ((*found)->state_->entry->used != Bytes()) {
    TONNAGE_BUG("an account in use was removed");
    return;
  }
  held->erase_subtree((*found)->state_->entry);
  children.erase(found);
}

std::vector<const Account*> Account::children() const {
  auto held = state_->tree->ledger.lock();
  std::vector<const Account*> all;
  for (const auto& child : state_->entry->children) all.push_back(child.get());
  return all;
}

// --- Budget

Budget::Budget(std::string name, Bytes limit) {
  auto state = std::make_unique<Account::State>();
  state->owned_tree = std::make_unique<Account::Tree>();
  state->tree = state->owned_tree.get();
  auto held = state->tree->ledger.lock();
  state->entry = held->entries.insert(held->entries.end(),
                                      Account::Tree::Entry{std::move(name), nullptr, limit, {}, {}, {}});
  root_ = std::make_unique<Account>(std::move(state));
}

Budget::~Budget() {
  // A charge that outlived its tree would write into freed memory.
  TONNAGE_CHECK(root_->used() == Bytes(), "a budget went away while charges were out");
}

Account& Budget::root() { return *root_; }

void Budget::on_release(UniqueFunction<void()> fn) {
  auto receiver = fn ? std::make_shared<UniqueFunction<void()>>(std::move(fn)) : nullptr;
  auto held = root_->state_->tree->ledger.lock();
  held->on_release.swap(receiver);
}

void Budget::on_shortage(UniqueFunction<void()> fn) {
  auto receiver = fn ? std::make_shared<UniqueFunction<void()>>(std::move(fn)) : nullptr;
  auto held = root_->state_->tree->ledger.lock();
  held->on_shortage.swap(receiver);
}

void Budget::fail_nth_charge(int n) {
  auto held = root_->state_->tree->ledger.lock();
  held->fail_in = n;
}

}  // namespace tonnage::memory
