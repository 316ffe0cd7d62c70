// SPDX-License-Identifier: Apache-2.0
// What the front itself holds, out of readings: pure but for the lowest that was seen.
//
// Promises: the base follows the readings up and down; pages that the allocator keeps after a burst are
// asked back (trim) once nobody is served and they are more than kKeptPages.
// Threads: the loop.
#pragma once

#include <algorithm>

#include "base/bytes.h"

namespace tonnage::server {

struct FrontUse {
  Bytes base;  // for the ledger
  bool trim = false;
};

class FrontUseTracker {
 public:
  static constexpr Bytes kKeptPages = mib(16);

  // `transient`: what ingress and envelopes are charged already.
  FrontUse read(Bytes anonymous, Bytes transient, bool is_at_rest) {
    const Bytes base = saturating_sub(anonymous, transient);
    const bool trim = is_at_rest && base > lowest_ + kKeptPages;
    lowest_ = std::min(lowest_, base);
    return {base, trim};
  }

 private:
  Bytes lowest_ = Bytes::max();
};

}  // namespace tonnage::server
