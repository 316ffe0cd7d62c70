// SPDX-License-Identifier: Apache-2.0
// Which waiting grants of one device may begin now: a pure decision on a snapshot.
//
// Promises:
//  1. Grants are all or nothing and looked at in ticket order; the sum of what may begin fits into
//     the free bytes.
//  2. A grant that does not fit lets later ones pass while it is young. Once it is older than
//     max(50 ms, one batch) nothing later begins that takes free bytes, so it cannot starve.
//  3. A grant inside its worker's lease takes no free bytes; it delays nobody and is never blocked.
// Threads: any, no state. Cannot fail.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace tonnage::memory {

struct WaitingGrant {
  std::uint64_t ticket = 0;
  Bytes growth;  // what the worker's lease must grow by: needed_for(grant) − amount()
  TimePoint waiting_since;
  Duration batch{};  // predicted time of the batch
};

struct GrantDecision {
  std::vector<std::uint64_t> begin;  // tickets, in order
  // What the oldest blocked grant still misses: trimming idle workers by that much would let it begin.
  Bytes missing;
  // When the first young grant becomes old and the decision may change; kNever when none.
  TimePoint next_look = kNever;
};

// `waiting` in ticket order.
GrantDecision decide_grants(std::span<const WaitingGrant> waiting, Bytes available, TimePoint now);

}  // namespace tonnage::memory
