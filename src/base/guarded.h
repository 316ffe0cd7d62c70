// SPDX-License-Identifier: Apache-2.0
// Guarded<T>: a value inside its lock. The lock object is the only door to the value, and using it
// through a temporary does not compile (tests/compile_fail/guarded_temporary.cc).
// Threads: any.
#pragma once

#include <mutex>
#include <utility>

namespace tonnage {

template <typename T>
class Guarded {
 public:
  template <typename... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  class [[nodiscard]] Lock {
   public:
    explicit Lock(Guarded& owner) : hold_(owner.mutex_), value_(&owner.value_) {}
    T* operator->() & { return value_; }
    T& operator*() & { return *value_; }
    T* operator->() && = delete;
    T& operator*() && = delete;
    // For condition variables, which wait on the lock itself.
    std::unique_lock<std::mutex>& native() & { return hold_; }

   private:
    std::unique_lock<std::mutex> hold_;
    T* value_;
  };

  Lock lock() { return Lock(*this); }

 private:
  std::mutex mutex_;
  T value_;
};

}  // namespace tonnage
