// SPDX-License-Identifier: Apache-2.0
// DeviceShare: what one worker holds of the ledger of the device that its model lies on.
//
// Promises:
//  1. Context, weights and loading are charged before there is a process, and settled when it is ready to
//     what the driver says that the process holds.
//  2. The lease is the high-water of what it took since: reserved bytes of its allocator as it tells after
//     each batch, and the driver's word each second, whichever is more.
//  3. Where the driver names no processes (in many containers), a context is taken for kContextAssumed.
// Threads: the loop. Owns: the charges. Fails with: unavailable/over_budget (how much is missing).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "memory/budget.h"
#include "memory/device.h"
#include "memory/lease.h"

namespace tonnage::supervisor::detail {

inline constexpr Bytes kContextAssumed = mib(700);

// `what` needs more than the account can give.
Status missing(std::string_view what, Bytes needed, const memory::Account& account);

class DeviceShare {
 public:
  DeviceShare(memory::Account& worker, const memory::DevicePort& driver);

  Status reserve(Bytes to_load);
  // Loaded: its weights as counted, and what its allocator has reserved.
  Status settle(pid_t pid, Bytes weights, Bytes reserved);
  // A batch of the lease's grant ended. `reserved`: nothing where it was not told.
  void end(Bytes peak, Bytes kept, std::optional<Bytes> reserved);
  void cancel() { lease_->end(use_, Bytes()); }  // a grant that nothing ran with
  void trimmed(pid_t pid, Bytes kept, Bytes reserved);
  void look(pid_t pid, bool is_idle);
  void give_back();

  bool is_ready() const { return lease_.has_value(); }
  memory::Lease& lease() { return *lease_; }
  const memory::Lease& lease() const { return *lease_; }
  Bytes base() const { return base_.amount(); }
  Bytes weights() const { return weights_.amount(); }
  Bytes charged() const;
  Bytes overdraft() const { return lease_account_.overdraft(); }
  Bytes use() const { return use_; }  // of the process on the device, as last read or told

 private:
  Bytes use_of(pid_t pid, Bytes reserved);

  memory::Account& base_account_;
  memory::Account& weights_account_;
  memory::Account& loading_account_;
  memory::Account& lease_account_;
  const memory::DevicePort& driver_;
  Bytes known_need_;  // base and weights of the last process that was ready
  memory::Charge base_;
  memory::Charge weights_;
  memory::Charge loading_;
  std::optional<memory::Lease> lease_;
  Bytes beside_;    // what it holds beside its allocator: the context
  Bytes reserved_;  // as last told
  Bytes use_;
};

}  // namespace tonnage::supervisor::detail
