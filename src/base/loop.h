// SPDX-License-Identifier: Apache-2.0
// Loop: the one event loop that all mechanisms of the front run on, as a port.
//
// Promises:
//  1. Every callback runs on the loop's thread, one at a time, never inside the call that armed it.
//  2. A Timer or Watch that is destroyed or reset never fires afterwards.
//  3. now() is the loop's clock; a manual loop (tests/testkit/manual_loop.h) advances it by hand.
// Does not promise: an order between callbacks due at the same instant, other than that of post().
// Threads: post() may be called from any thread; everything else only on the loop's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function.h"
#include "base/time.h"

namespace tonnage {

class Loop {
 public:
  // Disarms what it stands for when it goes away.
  class Registration {
   public:
    virtual ~Registration() = default;
  };
  using Timer = std::unique_ptr<Registration>;
  using Watch = std::unique_ptr<Registration>;

  virtual ~Loop() = default;

  virtual TimePoint now() const = 0;
  // Runs `fn` soon. Callable from any thread.
  virtual void post(UniqueFunction<void()> fn) = 0;
  // Runs `fn` once at `when` (at once, but not inside this call, when that has passed).
  [[nodiscard]] virtual Timer call_at(TimePoint when, UniqueFunction<void()> fn) = 0;
  // Runs `fn` each time `fd` is readable, until the Watch goes away. The fd must outlive the Watch.
  [[nodiscard]] virtual Watch watch_readable(int fd, UniqueFunction<void()> fn) = 0;

  [[nodiscard]] Timer call_after(Duration delay, UniqueFunction<void()> fn) {
    return call_at(now() + delay, std::move(fn));
  }
};

}  // namespace tonnage
