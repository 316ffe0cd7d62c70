// SPDX-License-Identifier: Apache-2.0
// UniqueFunction: a callable that may own move-only things (C++20 has no move_only_function).
// Promises: called at most as often as it is invoked; empty after being moved from.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/bug.h"

namespace tonnage {

template <typename Signature>
class UniqueFunction;

template <typename R, typename... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}  // NOLINT(*-explicit-*)

  template <typename F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& callable)  // NOLINT(*-explicit-*)
      : target_(std::make_unique<Target<std::decay_t<F>>>(std::forward<F>(callable))) {}

  explicit operator bool() const { return target_ != nullptr; }

  R operator()(Args... args) {
    TONNAGE_CHECK(target_ != nullptr, "an empty function was called");
    return target_->call(std::forward<Args>(args)...);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual R call(Args... args) = 0;
  };
  template <typename F>
  struct Target final : Base {
    explicit Target(F f) : callable(std::move(f)) {}
    R call(Args... args) override { return callable(std::forward<Args>(args)...); }
    F callable;
  };
  std::unique_ptr<Base> target_;
};

}  // namespace tonnage
