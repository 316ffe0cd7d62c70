// SPDX-License-Identifier: Apache-2.0
// The starvation bound of src/planner/README.md, simulated over the real lane and planner: one worker,
// the long-tailed mix, and a time table that is wrong by up to 30 % in either direction, by shape.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "lane/lane.h"
#include "planner/plan.h"
#include "testkit/traffic.h"

namespace tonnage {
namespace {

constexpr TimePoint kStart{seconds(1000)};
constexpr Duration kBound = milliseconds(250);
constexpr Duration kMaxAge = 2 * kBound;
constexpr double kWrong = 0.3;
constexpr double kCapacity = 50;  // rows per second of the table below, with full batches, about

// A MiniLM-class encoder at 200 GFLOP/s.
cost::CostTable encoder_table() {
  cost::CostTable table(64, 32, 1024);
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    const double length = table.length_of(column);
    for (std::uint32_t rows = 1; rows <= 64; ++rows) {
      const double flop = 6e8 + rows * length * (21'233'664 + 9'216 * length);
      table.set(rows, column, kib(14) * rows * table.length_of(column), from_seconds(flop / 200e9));
    }
  }
  return table;
}

struct Scenario {
  std::uint64_t seed = 1;
  double load = 0.9;
  std::size_t rows = 20000;
  Duration deadline{0};  // 0: none
  Duration max_queue = seconds(30);
};

struct Outcome {
  std::size_t answered = 0;
  std::size_t late = 0;
  std::size_t dropped = 0;  // by the plan or when the deadline passed
  std::size_t refused = 0;  // by the lane's bound
  std::array<std::size_t, 3> offered_by_class{};
  std::array<std::size_t, 3> answered_by_class{};
  double worst_wait = 0;      // seconds
  double worst_of_bound = 0;  // wait ÷ the bound that holds for this row
  double seconds = 0;
};

std::size_t class_of(std::uint32_t length) { return length <= 128 ? 0 : length <= 512 ? 1 : 2; }

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        errors_(scenario.seed),
        lane_({.max_rows = 4096, .max_work = scenario.max_queue}),
        traffic_(scenario.seed, testkit::kLongTailedMix, scenario.load * kCapacity, kStart) {
    limits_.cost = &cost_;
    limits_.free = gib(4);
    limits_.max_batch_time = kBound;
    limits_.max_age = kMaxAge;
  }

  Outcome run() {
    next_ = traffic_.next();
    while (arrived_ < scenario_.rows || lane_.rows() > 0) {
      if (lane_.rows() == 0) now_ = std::max(now_, next_.at);
      admit();
      expire();
      step();
    }
    outcome_.seconds = to_seconds(now_ - kStart);
    return outcome_;
  }

 private:
  void admit() {
    for (; arrived_ < scenario_.rows && next_.at <= now_; next_ = traffic_.next()) {
      const bool never = scenario_.deadline == Duration(0);
      const lane::QueuedRow row{.request = {.index = arrived_++, .generation = 1},
                                .length = next_.length,
                                .enqueued = next_.at,
                                .deadline = never ? kNever : next_.at + scenario_.deadline,
                                .work = cost_.time(1, cost_.column_of(next_.length))};
      ++outcome_.offered_by_class.at(class_of(row.length));
      ahead_[row.request.index] = lane_.rows();
      if (!lane_.push(std::span(&row, 1)).is_ok()) ++outcome_.refused;
      if (!never) deadlines_.emplace_back(row.deadline, row.request);
    }
  }

  // What the pipeline's table of open requests does. Arrivals in order have their deadlines in order.
  void expire() {
    for (; !deadlines_.empty() && deadlines_.front().first <= now_; deadlines_.pop_front()) {
      outcome_.dropped += lane_.remove(deadlines_.front().second);
    }
  }

  // One plan, carried out: the batch takes what the table says, wrong by this shape's error.
  void step() {
    const auto window = lane_.window(256);
    view_.clear();
    for (const lane::QueuedRow& row : window) {
      view_.push_back(
          {.length = row.length, .units = row.units, .enqueued = row.enqueued, .deadline = row.deadline});
    }
    const planner::Plan plan = plan_lane({.rows = view_}, limits_, now_, scratch_);
    const std::uint64_t shape = std::uint64_t{plan.units} << 32U | plan.length;
    const auto batch = lane_.take(plan.batch);
    outcome_.dropped += lane_.take(plan.drops).size();
    if (batch.empty()) return;
    const auto error = error_of_.try_emplace(shape, 1 - kWrong + 2 * kWrong * errors_.unit()).first->second;
    const TimePoint end = now_ + from_seconds(to_seconds(plan.time) * error);
    for (const lane::QueuedRow& row : batch) answer(row, end);
    now_ = end;
  }

  void answer(const lane::QueuedRow& row, TimePoint end) {
    ++outcome_.answered;
    if (end > row.deadline) {
      ++outcome_.late;
    } else {
      ++outcome_.answered_by_class.at(class_of(row.length));
    }
    const double wait = to_seconds(now_ - row.enqueued);
    const double batches = static_cast<double>(ahead_.at(row.request.index)) + 2;
    const double bound = to_seconds(kMaxAge) + batches * (1 + kWrong) * to_seconds(kBound);
    outcome_.worst_wait = std::max(outcome_.worst_wait, wait);
    outcome_.worst_of_bound = std::max(outcome_.worst_of_bound, wait / bound);
  }

  Scenario scenario_;
  Random errors_;
  cost::CostTable cost_ = encoder_table();
  lane::Lane lane_;
  testkit::Traffic traffic_;
  testkit::Arrival next_;
  planner::PlanLimits limits_;
  planner::PlanScratch scratch_;
  std::vector<planner::PlannerRow> view_;
  std::deque<std::pair<TimePoint, request::RequestId>> deadlines_;
  std::unordered_map<std::uint64_t, double> error_of_;
  std::unordered_map<std::uint32_t, std::size_t> ahead_;  // rows in the lane when this one came
  std::uint32_t arrived_ = 0;
  TimePoint now_ = kStart;
  Outcome outcome_;
};

TEST(Starvation, StaysBelowTheStatedBoundForEveryRow) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Outcome outcome = Simulation({.seed = seed, .load = 0.9}).run();
    EXPECT_EQ(20000U, outcome.answered) << "every row runs";
    EXPECT_LE(outcome.worst_of_bound, 1.0) << "seed " << seed;
    EXPECT_LE(outcome.worst_wait, 3.0) << "seed " << seed << ", seconds";
  }
}

TEST(Starvation, StaysBelowTheStatedBoundWhenTheLaneIsFullAllTheTime) {
  const Outcome outcome = Simulation({.seed = 4, .load = 2.0, .max_queue = seconds(5)}).run();
  EXPECT_GT(outcome.refused, 5000U) << "the lane's bound, not the planner, decides who stays out";
  EXPECT_EQ(20000U, outcome.answered + outcome.refused);
  EXPECT_LE(outcome.worst_of_bound, 1.0);
  EXPECT_LE(outcome.worst_wait, 8.0) << "seconds; the lane holds 5";
}

TEST(Starvation, MeetsDeadlinesThatLeaveRoomAtHighLoad) {
  const Outcome outcome = Simulation({.seed = 5, .load = 0.9, .deadline = seconds(10)}).run();
  EXPECT_EQ(20000U, outcome.answered);
  EXPECT_EQ(0U, outcome.late + outcome.dropped + outcome.refused);
}

TEST(Overload, CostsLittleGoodputAndSparesNoLengthClass) {
  const Scenario at_capacity{.seed = 6, .load = 1.0, .deadline = seconds(4), .max_queue = seconds(3)};
  Scenario overloaded = at_capacity;
  overloaded.load = 2.0;
  const Outcome calm = Simulation(at_capacity).run();
  const Outcome busy = Simulation(overloaded).run();
  const auto goodput = [](const Outcome& o) { return static_cast<double>(o.answered - o.late) / o.seconds; };
  EXPECT_GE(goodput(busy), 0.9 * goodput(calm));
  const double share = static_cast<double>(busy.answered - busy.late) / 20000;
  for (std::size_t i = 0; i < 3; ++i) {
    const double of_class =
        static_cast<double>(busy.answered_by_class.at(i)) / static_cast<double>(busy.offered_by_class.at(i));
    EXPECT_GE(of_class, 0.8 * share) << "length class " << i;
  }
}

}  // namespace
}  // namespace tonnage
