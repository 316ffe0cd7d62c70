// SPDX-License-Identifier: Apache-2.0
// Arbiter: which lane of a device runs next. Compute is in the ledger too: a batch holds as many
// compute tokens as its worker has threads.
//
// Promises:
//  1. Deficit round robin in predicted seconds by weight (Shreedhar & Varghese 1996): between two lanes
//     that always have a batch, shares follow the weights up to one quantum and one batch.
//  2. Inside a share the earliest must-start goes first, then the lane whose turn it is.
//  3. A lane that has a batch all the time, beside lanes that do too, on a device that runs one batch at
//     a time: its batch begins at latest after wait_bound(), where predicted times are right.
//  4. Never picks a lane whose batch does not fit into the free tokens. When only lanes that wait for
//     tokens have a share left, it picks nothing, so that tokens gather for them.
//  5. While nothing fits into the free tokens, nobody gains a share.
// Pure but for the deficits and the turn, which are its own state. A lane that does not contend gains
// nothing. Threads: the loop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace tonnage::planner {

struct Contender {
  std::uint32_t lane = 0;  // the caller's number
  double weight = 1.0;
  Duration time{};  // predicted time of its next batch
  TimePoint must_start_by = kNever;
  std::uint32_t tokens = 0;  // compute tokens that its worker needs; more than all means all
};

inline constexpr Duration kQuantum = milliseconds(50);

// `time` is the longest batch T of each lane, `w` its weight: the batch that runs, and then of each other
// lane j what it may have saved and what it gets while this lane i saves for its own batch:
//   max T + sum over j of T_j + w_j × (T_i ÷ w_i + 2 × quantum ÷ max w).
Duration wait_bound(std::span<const Contender> lanes, std::size_t i, Duration quantum = kQuantum);

class Arbiter {
 public:
  explicit Arbiter(Duration quantum = kQuantum) : quantum_(quantum) {}
  // Index into `contenders`, or nothing when none may run now.
  std::optional<std::size_t> choose(std::span<const Contender> contenders, std::uint32_t free_tokens);
  // The lane has used this much: call it with the predicted time when its batch starts, and with
  // actual − predicted (negative: it gets something back) when it has ended.
  void charge(std::uint32_t lane, Duration time);
  // The number is free for another lane, which begins without debts.
  void forget(std::uint32_t lane);

 private:
  void refill(std::span<const Contender> contenders);
  bool can_pay(const Contender& contender) const;

  Duration quantum_;
  std::vector<double> deficits_;  // seconds, by lane number
  std::size_t turn_ = 0;
  std::uint32_t most_tokens_ = 0;  // free at one time so far: what the device has
};

}  // namespace tonnage::planner
