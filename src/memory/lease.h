// SPDX-License-Identifier: Apache-2.0
// Lease and grant of one worker: a returned charge is not returned memory, so what a worker once
// touched stays its own until the kernel says that it was given back.
//
// Promises:
//  1. lease = high-water of (RssAnon − RssAnon when ready), as read by the front, charged to the
//     worker's `lease` account. Readings are facts: they are recorded even above the budget.
//  2. begin(grant) is free inside the lease; beyond it the lease grows first, all or nothing. While facts
//     exceed the budget, what they exceed it by is no room: a model that keeps bytes is stopped, not
//     followed.
//  3. end() ends the grant and gives back what was reserved for it and never became resident, except
//     for a rest of max(1 MiB, 1/16) that the next batch like it would ask for again. What was
//     resident stays leased; that shrinks only by settle(reading) after trim.
//  4. Slack is the highest that was ever resident minus the most tensor bytes there ever were: free pages
//     from an earlier batch are room for the next one, not overhead on top of it. It starts at 8 MiB, and a
//     grant far above all that was measured (a quarter and 1 MiB) starts from 8 MiB again.
//     It never falls below `least_slack`, by which a device's allocator may go beyond a grant.
//  5. Live tensors that the model keeps after a batch are no room: the next grant comes on top of them.
//  6. largest_grant() leaves 1/32 of the room, by which overhead varies from batch to batch.
//  7. What is resident, a grant and the most that a batch ever grew by beyond its tensors (8 MiB at first) is
//     enough for any batch. After a trim that is less than the slack that many small batches showed
//     together, so that a large one is not kept out for ever by pages that are gone.
//  8. With a factor above 1 (a worker whose tensors are not all of its memory) each byte that is or
//     may become resident is charged that many times, so that the next batch may need more than any before.
// Grants of a device are served in ticket order by GrantQueue (memory/grant_queue.h).
// Threads: the loop. Owns: the lease charge. Fails with: overloaded/over_budget.
#pragma once

#include <algorithm>

#include "base/bytes.h"
#include "base/status.h"
#include "memory/budget.h"

namespace tonnage::memory {

// What is taken for overhead before anything was measured.
inline constexpr Bytes kFirstSlack = mib(8);

class Lease {
 public:
  // `slack` is what resident memory takes on top of tensor bytes (fragmentation, caches); learned.
  // Precondition: charged_per_byte ≥ 1.
  Lease(Account& account, Bytes resident_when_ready, Bytes data_when_ready, double charged_per_byte = 1.0,
        Bytes least_slack = Bytes());

  Bytes amount() const { return charge_.amount(); }
  Bytes grant() const { return grant_; }
  Bytes slack() const { return slack_; }
  Bytes slack_for(Bytes grant) const;  // what a batch of this grant may take on top of it
  // The most that slack ever was: small batches, which come first, may show more of it than large ones.
  Bytes highest_slack() const { return highest_slack_; }
  Bytes resident_high() const { return resident_high_; }
  Bytes highest_peak() const { return highest_peak_; }  // of tensors, of one batch

  // Lease that `grant` tensor bytes would need: max(lease, (kept + grant + slack) × factor), or less by 7.
  Bytes needed_for(Bytes grant) const;
  // Largest grant that could begin now: inside the lease, or with what the account can still give.
  Bytes largest_grant() const { return largest_grant(resident_high_); }
  // … and after a trim: at least as much.
  Bytes largest_grant_when_trimmed() const { return largest_grant(std::min(resident_high_, settled_)); }
  Status begin(Bytes grant);
  // Room less what largest_grant() leaves of it.
  static Bytes usable(Bytes room) { return room - Bytes(room.count() / kCushion); }
  // The least room of which so much is usable.
  static Bytes room_for(Bytes used) { return used + Bytes(used.count() / (kCushion - 1)); }
  // `resident` = RssAnon read by the front after the batch; peak = tensor bytes the worker reported;
  // highest = the most that was resident since ready or settle(), where the kernel knows it: a worker that
  // frees at once shows little afterwards, and needs its overhead all the same.
  void end(Bytes resident, Bytes peak, Bytes highest = Bytes());
  // What the model keeps now, as its worker tells; from the next batch on.
  void keep(Bytes kept) { kept_ = kept; }
  Bytes kept() const { return kept_; }
  // end() without a reading: allowed where needs_reading(grant) was false.
  void end_unread(Bytes peak);
  // Whether a run of `grant` could make more resident than is known to be; with a factor, each could.
  bool needs_reading(Bytes grant) const {
    return charged_per_byte_ > 1.0 || needed_for(grant) > resident_high_ + rest();
  }
  // A reading between batches or in the middle of one; it can only raise the lease.
  void observe(Bytes resident);
  // After trim or decay and a new reading: lease falls to what is resident now.
  void settle(Bytes resident);
  // RLIMIT_DATA for the worker: VmData at ready + lease + max(64 MiB, 10 % of both).
  Bytes data_limit() const;

 private:
  static constexpr std::uint64_t kCushion = 32;
  Bytes charged(Bytes resident) const;
  Bytes room() const;
  Bytes largest_grant(Bytes resident) const;
  Bytes use_of(Bytes grant) const {
    return std::min(kept_ + grant + slack_for(grant), resident_high_ + grant + growth_);
  }
  void learn_peak(Bytes peak);
  void learn_growth(Bytes peak, Bytes resident, Bytes highest);
  Bytes first_slack() const { return std::max(kFirstSlack, least_slack_); }
  Bytes explored() const;  // tensor bytes up to here are judged by the measured slack
  Bytes rest() const;      // reservation that may stay above the resident high-water
  void raise_to(Bytes above_ready);

  Account& account_;
  Charge charge_;
  Bytes ready_;
  Bytes data_ready_;
  double charged_per_byte_;
  Bytes least_slack_;
  Bytes grant_;
  Bytes slack_;
  Bytes highest_slack_;
  Bytes resident_high_;    // above ready, by readings since the last settle
  bool is_read_ = true;    // there was a reading after the last batch
  Bytes before_;           // resident_high_ as the grant began
  Bytes settled_highest_;  // above ready, at any time since the last settle
  Bytes settled_;          // above ready, by the last settle
  Bytes growth_;           // the most that one batch took beyond its peak and what was resident before
  Bytes highest_;          // above ready, at any time
  Bytes tensor_high_;      // kept and peak of a batch together
  Bytes highest_peak_;
  Bytes kept_;
};

}  // namespace tonnage::memory
