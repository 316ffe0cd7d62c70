// SPDX-License-Identifier: Apache-2.0
// PostLoop: a loop of posts only, from any thread, which a test waits for and runs one at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <utility>

#include "base/guarded.h"
#include "base/loop.h"

namespace tonnage::testkit {

class PostLoop final : public Loop {
 public:
  TimePoint now() const override { return {}; }
  void post(UniqueFunction<void()> fn) override {
    auto held = posts_.lock();
    held->push_back(std::move(fn));
    arrived_.notify_one();
  }
  Timer call_at(TimePoint, UniqueFunction<void()>) override { return nullptr; }
  Watch watch_readable(int, UniqueFunction<void()>) override { return nullptr; }

  void run_one() {
    UniqueFunction<void()> next;
    {
      auto held = posts_.lock();
      arrived_.wait(held.native(), [&held] { return !held->empty(); });
      next = std::move(held->front());
      held->pop_front();
    }
    next();
  }

 private:
  Guarded<std::deque<UniqueFunction<void()>>> posts_;
  std::condition_variable arrived_;
};

}  // namespace tonnage::testkit
