// SPDX-License-Identifier: Apache-2.0
// Arbiter: which lane of a device runs next. Compute is in the ledger too: a batch holds as many
// compute tokens as its worker has threads.
//
// Promises: deficit round robin in predicted seconds by weight (Shreedhar & Varghese 1996); earliest
// must-start inside a share; never picks a lane whose batch does not fit into the free tokens.
// Pure but for the deficits, which are its own state. Threads: the loop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace tonnage::planner {

struct Contender {
  std::uint32_t lane = 0;    // the caller's number
  double weight = 1.0;
  Duration time{};           // predicted time of its next batch
  TimePoint must_start_by = kNever;
  std::uint32_t tokens = 0;  // compute tokens that its worker needs
};

class Arbiter {
 public:
  explicit Arbiter(Duration quantum = milliseconds(50)) : quantum_(quantum) {}
  // Index into `contenders`, or nothing when none fits.
  std::optional<std::size_t> choose(std::span<const Contender> contenders, std::uint32_t free_tokens);
  // The batch that was chosen has used this much.
  void charge(std::uint32_t lane, Duration time);

 private:
  Duration quantum_;
  std::vector<double> deficits_;  // seconds, by lane number
  std::size_t turn_ = 0;
};

}  // namespace tonnage::planner
