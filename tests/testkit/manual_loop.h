// SPDX-License-Identifier: Apache-2.0
// ManualLoop: a Loop whose clock moves only when a test moves it. Deterministic: callbacks run in the
// order of their time, then of their arming.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "base/loop.h"

namespace tonnage::testkit {

class ManualLoop final : public Loop {
 public:
  TimePoint now() const override { return now_; }

  void post(UniqueFunction<void()> fn) override { posted_.push_back(std::move(fn)); }

  Timer call_at(TimePoint when, UniqueFunction<void()> fn) override {
    const Key key{std::max(when, now_), next_++};
    timers_.emplace(key, std::move(fn));
    return std::make_unique<Armed>(*this, key);
  }

  // Readiness is told by hand: signal_readable(fd).
  Watch watch_readable(int fd, UniqueFunction<void()> fn) override {
    watches_[fd] = std::make_shared<UniqueFunction<void()>>(std::move(fn));
    return std::make_unique<Watching>(*this, fd);
  }
  void signal_readable(int fd) {
    if (const auto found = watches_.find(fd); found != watches_.end()) {
      const auto keep = found->second;
      (*keep)();
    }
  }

  // Runs everything posted, without moving the clock.
  void run_posted() {
    while (!posted_.empty()) {
      auto fn = std::move(posted_.front());
      posted_.pop_front();
      fn();
    }
  }
  // Moves the clock to `when`, running every timer that falls due on the way.
  void advance_to(TimePoint when) {
    run_posted();
    while (!timers_.empty() && timers_.begin()->first.first <= when) {
      auto node = timers_.extract(timers_.begin());
      now_ = node.key().first;
      node.mapped()();
      run_posted();
    }
    now_ = when;
  }
  void advance(Duration d) { advance_to(now_ + d); }
  // Runs timers until none is left or `limit` is reached.
  TimePoint next_timer() const { return timers_.empty() ? kNever : timers_.begin()->first.first; }
  bool has_timers() const { return !timers_.empty(); }

 private:
  using Key = std::pair<TimePoint, unsigned long>;
  struct Armed final : Registration {
    Armed(ManualLoop& owner, Key armed) : loop(owner), key(armed) {}
    ~Armed() override { loop.timers_.erase(key); }
    ManualLoop& loop;
    Key key;
  };
  struct Watching final : Registration {
    Watching(ManualLoop& owner, int watched) : loop(owner), fd(watched) {}
    ~Watching() override { loop.watches_.erase(fd); }
    ManualLoop& loop;
    int fd;
  };

  TimePoint now_{seconds(1000)};
  unsigned long next_ = 0;
  std::deque<UniqueFunction<void()>> posted_;
  std::map<Key, UniqueFunction<void()>> timers_;
  std::map<int, std::shared_ptr<UniqueFunction<void()>>> watches_;
};

}  // namespace tonnage::testkit
