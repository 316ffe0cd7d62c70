// SPDX-License-Identifier: Apache-2.0
// Completion<T>: the right and the duty to answer exactly once.
//
// Promises:
//  1. answer() runs the receiver once; a second answer is a counted bug and is not delivered.
//  2. Destroyed unanswered, it answers internal/dropped and counts a bug: nobody waits for ever.
// Threads: one owner at a time. Owns: the receiver.
#pragma once

#include <utility>

#include "base/function.h"
#include "base/status.h"

namespace tonnage {

template <typename T>
class Completion {
 public:
  using Receiver = UniqueFunction<void(Result<T>)>;

  Completion() = default;
  explicit Completion(Receiver receiver) : receiver_(std::move(receiver)) {}
  Completion(Completion&&) noexcept = default;
  Completion& operator=(Completion&& other) noexcept {
    if (this != &other) {
      drop();
      receiver_ = std::move(other.receiver_);
    }
    return *this;
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  ~Completion() { drop(); }

  bool is_open() const { return static_cast<bool>(receiver_); }

  void answer(Result<T> result) {
    if (!receiver_) {
      TONNAGE_BUG("a completion was answered twice");
      return;
    }
    Receiver receiver = std::exchange(receiver_, Receiver());
    receiver(std::move(result));
  }

 private:
  void drop() {
    if (!receiver_) return;
    TONNAGE_BUG("a completion was dropped unanswered");
    answer(internal("dropped", "the request was dropped inside the server"));
  }

  Receiver receiver_;
};

}  // namespace tonnage
