// SPDX-License-Identifier: Apache-2.0
// Lease and grant of one worker: a returned charge is not returned memory, so what a worker once
// touched stays its own until the kernel says that it was given back.
//
// Promises:
//  1. lease = high-water of (RssAnon − RssAnon when ready), as read by the front, charged to the
//     worker's `lease` account. Readings are facts: they are recorded even above the budget.
//  2. begin(grant) is free inside the lease; beyond it the lease grows first, all or nothing.
//  3. end() ends the grant, never the lease. The lease shrinks only by settle(reading) after trim.
// Grants of a device are served in ticket order by GrantQueue (memory/grant_queue.h).
// Threads: the loop. Owns: the lease charge. Fails with: overloaded/over_budget.
#pragma once

#include "base/bytes.h"
#include "base/status.h"
#include "memory/budget.h"

namespace tonnage::memory {

class Lease {
 public:
  // `slack` is what resident memory takes on top of tensor bytes (fragmentation, caches); learned.
  Lease(Account& account, Bytes resident_when_ready, Bytes data_when_ready);

  Bytes amount() const { return charge_.amount(); }
  Bytes grant() const { return grant_; }
  Bytes slack() const { return slack_; }

  // Lease that `grant` tensor bytes would need: max(lease, grant + slack).
  Bytes needed_for(Bytes grant) const;
  // Largest grant that could begin now: inside the lease, or with what the account can still give.
  Bytes largest_grant() const;
  Status begin(Bytes grant);
  // `resident` = RssAnon read by the front after the batch; peak = tensor bytes the worker reported.
  void end(Bytes resident, Bytes peak);
  // After trim or decay and a new reading: lease falls to what is resident now.
  void settle(Bytes resident);
  // RLIMIT_DATA for the worker: VmData at ready + lease + max(64 MiB, 10 %).
  Bytes data_limit() const;

 private:
  Account& account_;
  Charge charge_;
  Bytes ready_;
  Bytes data_ready_;
  Bytes grant_;
  Bytes slack_;
};

}  // namespace tonnage::memory
