// SPDX-License-Identifier: Apache-2.0
#include "server/asio_loop.h"

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "base/bug.h"

namespace tonnage::server {
namespace {

using boost::system::error_code;
using SteadyTimer = boost::asio::basic_waitable_timer<std::chrono::steady_clock>;

// Shared between the registration (which disarms) and the handler in flight (which looks again): a
// cancelled wait may already have been queued as done.
struct TimerState {
  explicit TimerState(boost::asio::io_context& io) : timer(io) {}
  SteadyTimer timer;
  UniqueFunction<void()> fn;
};

class ArmedTimer final : public Loop::Registration {
 public:
  explicit ArmedTimer(std::shared_ptr<TimerState> state) : state_(std::move(state)) {}
  ~ArmedTimer() override {
    state_->fn = nullptr;
    state_->timer.cancel();
  }

 private:
  std::shared_ptr<TimerState> state_;
};

struct WatchState {
  explicit WatchState(boost::asio::io_context& io) : descriptor(io) {}
  boost::asio::posix::stream_descriptor descriptor;
  UniqueFunction<void()> fn;
  bool live = true;
};

void wait_readable(const std::shared_ptr<WatchState>& state) {
  state->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                               [state](const error_code& error) {
                                 if (!state->live || error) return;
                                 // Moved out while it runs: the callback may destroy its own Watch.
                                 UniqueFunction<void()> fn = std::move(state->fn);
                                 fn();
                                 if (!state->live) return;
                                 state->fn = std::move(fn);
                                 wait_readable(state);
                               });
}

class ArmedWatch final : public Loop::Registration {
 public:
  explicit ArmedWatch(std::shared_ptr<WatchState> state) : state_(std::move(state)) {}
  ~ArmedWatch() override {
    state_->live = false;
    state_->fn = nullptr;
    // Released, not closed: the descriptor is its owner's.
    if (state_->descriptor.is_open()) state_->descriptor.release();
  }

 private:
  std::shared_ptr<WatchState> state_;
};

}  // namespace

TimePoint AsioLoop::now() const { return std::chrono::steady_clock::now(); }

void AsioLoop::post(UniqueFunction<void()> fn) {
  boost::asio::post(io_, [fn = std::move(fn)]() mutable { fn(); });
}

Loop::Timer AsioLoop::call_at(TimePoint when, UniqueFunction<void()> fn) {
  auto state = std::make_shared<TimerState>(io_);
  state->fn = std::move(fn);
  // kNever in nanoseconds would overflow inside the timer queue's arithmetic; a year is never enough.
  state->timer.expires_at(std::min(when, now() + std::chrono::hours(24 * 365)));
  state->timer.async_wait([state](const error_code& error) {
    if (error || !state->fn) return;
    UniqueFunction<void()> due = std::move(state->fn);
    due();
  });
  return std::make_unique<ArmedTimer>(std::move(state));
}

Loop::Watch AsioLoop::watch_readable(int fd, UniqueFunction<void()> fn) {
  auto state = std::make_shared<WatchState>(io_);
  state->fn = std::move(fn);
  error_code error;
  state->descriptor.assign(fd, error);
  if (error) {
    TONNAGE_BUG("a descriptor that cannot be watched: " + error.message());
  } else {
    wait_readable(state);
  }
  return std::make_unique<ArmedWatch>(std::move(state));
}

}  // namespace tonnage::server
