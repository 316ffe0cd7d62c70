// SPDX-License-Identifier: Apache-2.0
#include "memory/grant_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "base/random.h"
#include "memory/lease.h"

namespace tonnage::memory {
namespace {

using Tickets = std::vector<std::uint64_t>;
constexpr TimePoint kNow{seconds(100)};

WaitingGrant waiting(std::uint64_t ticket, Bytes growth, Duration age, Duration batch = milliseconds(10)) {
  return {ticket, growth, kNow - age, batch};
}

TEST(Grants, BeginInTicketOrderWhileTheyFit) {
  const std::vector<WaitingGrant> queue{waiting(1, mib(4), milliseconds(9)),
                                        waiting(2, mib(4), milliseconds(8)),
                                        waiting(3, mib(4), milliseconds(7))};
  const auto decision = decide_grants(queue, mib(9), kNow);
  EXPECT_EQ((Tickets{1, 2}), decision.begin);
  EXPECT_EQ(mib(3), decision.missing);
}

TEST(Grants, LetLaterOnesPassAYoungOneThatDoesNotFit) {
  const std::vector<WaitingGrant> queue{waiting(1, mib(20), milliseconds(10)),
                                        waiting(2, mib(4), milliseconds(1))};
  const auto decision = decide_grants(queue, mib(9), kNow);
  EXPECT_EQ((Tickets{2}), decision.begin);
  EXPECT_EQ(kNow + milliseconds(40) + Duration(1), decision.next_look);
}

TEST(Grants, CloseTheDoorBehindAnOldOne) {
  const std::vector<WaitingGrant> queue{waiting(1, mib(20), milliseconds(51)),
                                        waiting(2, mib(4), milliseconds(1))};
  const auto decision = decide_grants(queue, mib(9), kNow);
  EXPECT_TRUE(decision.begin.empty());
  EXPECT_EQ(mib(11), decision.missing);
  EXPECT_EQ(kNever, decision.next_look);
}

TEST(Grants, AreOldOnlyAfterOneBatchWhereThatIsLonger) {
  const std::vector<WaitingGrant> queue{waiting(1, mib(20), milliseconds(51), milliseconds(200)),
                                        waiting(2, mib(4), milliseconds(1))};
  EXPECT_EQ((Tickets{2}), decide_grants(queue, mib(9), kNow).begin);
}

TEST(Grants, InsideTheirLeaseAreNeverBlocked) {
  const std::vector<WaitingGrant> queue{waiting(1, mib(20), seconds(1)),
                                        waiting(2, Bytes(), milliseconds(1))};
  EXPECT_EQ((Tickets{2}), decide_grants(queue, Bytes(), kNow).begin);
}

// A seeded simulation: workers of random models under a budget that is just enough for the largest
// single batch. Every batch must run: what idle workers hold is trimmed when somebody misses it.
class GrantSimulation {
 public:
  explicit GrantSimulation(std::uint64_t seed) : random_(seed) {
    const std::size_t workers = 2 + random_.below(5);
    Bytes largest;
    for (std::size_t i = 0; i < workers; ++i) {
      SimulatedWorker worker;
      worker.largest = kib(64 + random_.below(20000));
      worker.overhead = kib(random_.below(4096));
      worker.retained = kib(random_.below(64));
      worker.left = 40;
      largest = std::max(largest, worker.largest + mib(8));
      retained_ += worker.retained;
      workers_.push_back(std::move(worker));
    }
    // The minimum: the largest batch with its first slack, and what trim leaves with the others.
    budget_ = std::make_unique<Budget>("device", largest + retained_);
    for (std::size_t i = 0; i < workers; ++i) {
      workers_[i].lease.emplace(budget_->root().child(std::to_string(i)), mib(50), mib(80));
    }
  }
  ~GrantSimulation() { workers_.clear(); }
  GrantSimulation(const GrantSimulation&) = delete;
  GrantSimulation& operator=(const GrantSimulation&) = delete;

  // Steps until all batches have run; false when `limit` steps were not enough.
  bool run(int limit) {
    for (int step = 0; step < limit; ++step) {
      if (std::ranges::all_of(workers_, [](const auto& w) { return w.left == 0; })) return true;
      now_ += milliseconds(5);
      finish_due();
      ask();
      begin_some();
    }
    return false;
  }
  Bytes used() const { return budget_->root().used(); }
  Bytes peak() const { return budget_->root().peak(); }
  Bytes limit() const { return budget_->root().limit(); }

 private:
  struct SimulatedWorker {
    std::optional<Lease> lease;
    Bytes largest, overhead, retained, grant, peak;
    std::uint64_t ticket = 0;  // 0: asks for nothing
    TimePoint since, done_at;
    bool is_running = false;
    int left = 0;
    Bytes resident;  // high-water above ready that was not given back
  };

  void finish_due() {
    for (auto& w : workers_) {
      if (!w.is_running || w.done_at > now_) continue;
      w.resident = std::max(w.resident, w.peak + std::min(w.overhead, mib(4)));
      w.lease->end(mib(50) + w.resident, w.peak);
      w.is_running = false;
      --w.left;
    }
  }
  void ask() {
    for (auto& w : workers_) {
      if (w.is_running || w.ticket != 0 || w.left == 0) continue;
      w.grant = Bytes(1 + random_.below(w.largest.count()));
      w.peak = Bytes(random_.below(w.grant.count() + 1));
      w.ticket = next_ticket_++;
      w.since = now_;
    }
  }
  void begin_some() {
    std::vector<WaitingGrant> queue;
    for (const auto& w : workers_) {
      if (w.ticket != 0) {
        queue.push_back(
            {w.ticket, w.lease->needed_for(w.grant) - w.lease->amount(), w.since, milliseconds(20)});
      }
    }
    std::ranges::sort(queue, {}, &WaitingGrant::ticket);
    const auto decision = decide_grants(queue, budget_->root().available(), now_);
    for (auto& w : workers_) {
      if (std::ranges::find(decision.begin, w.ticket) == decision.begin.end() || w.ticket == 0) continue;
      ASSERT_TRUE(w.lease->begin(w.grant).is_ok()) << "a decision promised more than there was";
      w.is_running = true;
      w.ticket = 0;
      w.done_at = now_ + milliseconds(random_.between(1, 40));
    }
    if (decision.missing > Bytes()) trim_idle();
  }
  void trim_idle() {
    for (auto& w : workers_) {
      if (w.is_running) continue;
      w.resident = std::min(w.resident, w.retained);
      w.lease->settle(mib(50) + w.resident);
    }
  }

  Random random_;
  std::unique_ptr<Budget> budget_;
  std::deque<SimulatedWorker> workers_;
  std::uint64_t next_ticket_ = 1;
  Bytes retained_;
  TimePoint now_{};
};

TEST(GrantsProperty, AtTheSmallestBudgetEveryBatchRunsAndTheBudgetHolds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    GrantSimulation simulation(seed);
    EXPECT_TRUE(simulation.run(20000));
    EXPECT_LE(simulation.peak(), simulation.limit());
  }
}

}  // namespace
}  // namespace tonnage::memory
