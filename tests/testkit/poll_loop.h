// SPDX-License-Identifier: Apache-2.0
// PollLoop: a small real Loop on poll(2) and the steady clock, for tests with real processes.
// The only real clock of the tests; run_until() gives up after one minute and says so.
// Threads: post() from any, the rest on the thread that runs it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/loop.h"
#include "base/unique_fd.h"

namespace tonnage::testkit {

class PollLoop final : public Loop {
 public:
  PollLoop();

  TimePoint now() const override;
  void post(UniqueFunction<void()> fn) override;
  Timer call_at(TimePoint when, UniqueFunction<void()> fn) override;
  Watch watch_readable(int fd, UniqueFunction<void()> fn) override;

  // Runs callbacks until `is_done` holds. False when that took a minute.
  [[nodiscard]] bool run_until(const std::function<bool()>& is_done);
  // One turn: what is due or readable, waiting at most until `deadline`.
  void turn(TimePoint deadline);

 private:
  struct Watched {
    int fd;
    std::shared_ptr<UniqueFunction<void()>> fn;
  };
  using TimerKey = std::pair<TimePoint, std::uint64_t>;
  struct Armed;
  struct Watching;

  bool run_posted();
  bool run_due_timers();
  void run_readable(TimePoint deadline);

  UniqueFd wake_;
  Guarded<std::vector<UniqueFunction<void()>>> posted_;
  std::uint64_t next_ = 0;
  std::map<TimerKey, UniqueFunction<void()>> timers_;
  std::map<std::uint64_t, Watched> watches_;
};

}  // namespace tonnage::testkit
