// SPDX-License-Identifier: Apache-2.0
#include "testkit/poll_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

namespace tonnage::testkit {

struct PollLoop::Armed final : Registration {
  Armed(PollLoop& owner, TimerKey armed) : loop(owner), key(armed) {}
  ~Armed() override { loop.timers_.erase(key); }
  PollLoop& loop;
  TimerKey key;
};

struct PollLoop::Watching final : Registration {
  Watching(PollLoop& owner, std::uint64_t watched) : loop(owner), id(watched) {}
  ~Watching() override { loop.watches_.erase(id); }
  PollLoop& loop;
  std::uint64_t id;
};

PollLoop::PollLoop() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

TimePoint PollLoop::now() const { return std::chrono::steady_clock::now(); }

void PollLoop::post(UniqueFunction<void()> fn) {
  {
    auto posted = posted_.lock();
    posted->push_back(std::move(fn));
  }
  ::eventfd_write(wake_.get(), 1);
}

Loop::Timer PollLoop::call_at(TimePoint when, UniqueFunction<void()> fn) {
  const TimerKey key{when, next_++};
  timers_.emplace(key, std::move(fn));
  return std::make_unique<Armed>(*this, key);
}

Loop::Watch PollLoop::watch_readable(int fd, UniqueFunction<void()> fn) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);  // as the server's loop does
  const std::uint64_t id = next_++;
  watches_[id] = {fd, std::make_shared<UniqueFunction<void()>>(std::move(fn))};
  return std::make_unique<Watching>(*this, id);
}

bool PollLoop::run_until(const std::function<bool()>& is_done) {
  const TimePoint give_up = now() + seconds(60);
  while (!is_done()) {
    if (now() >= give_up) return false;
    turn(give_up);
  }
  return true;
}

void PollLoop::turn(TimePoint deadline) {
  // What ran may be what the caller waits for, so the turn does not wait after it.
  const bool ran_posted = run_posted();
  const bool ran_timers = run_due_timers();
  run_readable(ran_posted || ran_timers ? now() : deadline);
}

bool PollLoop::run_posted() {
  std::vector<UniqueFunction<void()>> posted;
  {
    auto waiting = posted_.lock();
    posted.swap(*waiting);
  }
  for (auto& fn : posted) fn();
  return !posted.empty();
}

bool PollLoop::run_due_timers() {
  const TimePoint until = now();
  bool ran = false;
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    auto due = timers_.extract(timers_.begin());
    due.mapped()();
    ran = true;
  }
  return ran;
}

void PollLoop::run_readable(TimePoint deadline) {
  if (!timers_.empty()) deadline = std::min(deadline, timers_.begin()->first.first);
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  std::vector<std::uint64_t> ids{0};
  for (const auto& [id, watched] : watches_) {
    polled.push_back({watched.fd, POLLIN, 0});
    ids.push_back(id);
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline - now(), Duration()));
  {
    auto posted = posted_.lock();
    if (!posted->empty()) return;
  }
  if (::poll(polled.data(), polled.size(), static_cast<int>(wait.count())) <= 0) return;
  eventfd_t ignored = 0;
  if (polled[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
  for (std::size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    // An earlier callback of this turn may have taken the watch away.
    const auto found = watches_.find(ids[i]);
    if (found == watches_.end()) continue;
    const auto keep = found->second.fn;
    (*keep)();
  }
}

}  // namespace tonnage::testkit
