// SPDX-License-Identifier: Apache-2.0
#include "memory/grant_queue.h"

#include <algorithm>

namespace tonnage::memory {

GrantDecision decide_grants(std::span<const WaitingGrant> waiting, Bytes available, TimePoint now) {
  constexpr Duration kYoung = milliseconds(50);
  GrantDecision decision;
  bool is_closed = false;  // an old grant waits for the bytes that are free
  for (const WaitingGrant& grant : waiting) {
    const bool takes_bytes = grant.growth > Bytes();
    if (!takes_bytes || (!is_closed && grant.growth <= available)) {
      decision.begin.push_back(grant.ticket);
      available -= grant.growth;
      continue;
    }
    if (is_closed) continue;
    if (decision.missing == Bytes()) decision.missing = grant.growth - available;
    const TimePoint old_at = grant.waiting_since + std::max(kYoung, grant.batch);
    if (now > old_at) {
      is_closed = true;
    } else {
      // Old means older than the bound, so the look comes one tick after it.
      decision.next_look = std::min(decision.next_look, old_at + Duration(1));
    }
  }
  return decision;
}

}  // namespace tonnage::memory
