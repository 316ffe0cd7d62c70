// SPDX-License-Identifier: Apache-2.0
// What the front itself holds, out of readings: pure but for what it remembers of them.
//
// Promises: the base follows the readings up and down; pages that the allocator keeps after a burst are
// asked back (trim) once nobody is served, malloc has more than kKeptPages free and the base is more than
// that above its floor, at most each kTrimEvery. What a trim leaves is the new floor: it is in use.
// Threads: the loop.
#pragma once

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/time.h"

namespace tonnage::server {

struct FrontReading {
  Bytes anonymous;     // resident
  Bytes transient;     // what ingress and envelopes are charged already
  Bytes free_in_heap;  // of malloc: allocated by nobody, given back to the kernel or not
  bool is_at_rest = false;
};

struct FrontUse {
  Bytes base;  // for the ledger
  bool trim = false;
};

class FrontUseTracker {
 public:
  static constexpr Bytes kKeptPages = mib(16);
  static constexpr Duration kTrimEvery = seconds(30);

  FrontUse read(const FrontReading& seen, TimePoint now) {
    const Bytes base = saturating_sub(seen.anonymous, seen.transient);
    const bool is_what_a_trim_left = std::exchange(has_trimmed_, false) && seen.is_at_rest;
    floor_ = is_what_a_trim_left ? base : std::min(floor_, base);
    if (!seen.is_at_rest || now < next_trim_ || seen.free_in_heap <= kKeptPages ||
        base <= floor_ + kKeptPages) {
      return {base, false};
    }
    has_trimmed_ = true;
    next_trim_ = now + kTrimEvery;
    return {base, true};
  }

 private:
  Bytes floor_ = Bytes::max();
  bool has_trimmed_ = false;  // with the last reading
  TimePoint next_trim_{};
};

}  // namespace tonnage::server
