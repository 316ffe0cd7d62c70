// SPDX-License-Identifier: Apache-2.0
// plan_lane against a brute force over every contiguous partition and every group that could go first.
// The oracle states the objective in its plainest form and shares no code with the planner.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "base/random.h"
#include "planner/plan.h"

namespace tonnage::planner {
namespace {

constexpr TimePoint kNow{seconds(1000)};
constexpr std::uint32_t kPad = 8;

// A random snapshot in nanoseconds, small enough for ties to be common.
struct Snapshot {
  cost::CostTable cost{6, kPad, 64};
  std::vector<PlannerRow> rows;
  std::vector<std::uint32_t> edges{16, 40};
  PlanLimits limits;

  explicit Snapshot(std::uint64_t seed) {
    Random random(seed);
    fill_cost(random);
    limits.cost = &cost;
    limits.edges = edges;
    limits.policy = random.below(4) == 0 ? model::Policy::kBuckets : model::Policy::kDp;
    limits.meet = random.below(4) == 0 ? model::MeetRule::kGroup : model::MeetRule::kPad;
    limits.max_rows = static_cast<std::uint32_t>(random.between(1, 7));
    limits.free =
        random.below(3) == 0 ? Bytes(static_cast<std::uint64_t>(random.between(10, 200))) : Bytes(100000);
    limits.max_batch_time = Duration(random.between(10, 120));
    limits.max_age = Duration(random.between(20, 200));
    limits.drift = random.below(2) == 0 ? 1.0 : 0.5 + random.unit();
    fill_rows(random);
  }

  // Monotone in rows and in length, as CostTable promises.
  void fill_cost(Random& random) {
    const std::int64_t fixed = random.between(0, 30);
    const std::int64_t slope = random.between(1, 6);
    const bool is_rough = random.below(2) == 0;
    for (std::uint32_t column = 0; column < cost.columns(); ++column) {
      for (std::uint32_t n = 1; n <= cost.max_rows(); ++n) {
        std::int64_t time = fixed + slope * n * (column + 1);
        std::uint64_t bytes = 4 + 2 * std::uint64_t{n} * (column + 1);
        if (is_rough) {
          time = random.between(0, 12) + 1;
          if (n > 1) time += cost.time(n - 1, column).count();
          if (column > 0) time = std::max(time, cost.time(n, column - 1).count() + random.between(0, 3));
        }
        cost.set(n, column, Bytes(bytes), Duration(time));
      }
    }
  }
  void fill_rows(Random& random) {
    const std::int64_t mood = random.between(0, 3);  // 0: no deadlines … 3: all near
    rows.resize(static_cast<std::size_t>(random.between(1, 8)));
    TimePoint arrival = kNow - Duration(random.between(0, 300));
    for (PlannerRow& row : rows) {
      arrival = std::min(kNow, arrival + Duration(random.between(0, 60)));
      row.length = static_cast<std::uint32_t>(random.between(1, 64));
      row.group = random.below(3) == 0 ? static_cast<std::uint32_t>(random.between(1, 300)) % 3 * 256 : 0;
      row.units = random.below(5) == 0 ? static_cast<std::uint32_t>(random.between(1, 7)) : 1;
      row.enqueued = arrival;
      if (random.below(4) < static_cast<std::uint64_t>(mood))
        row.deadline = kNow + Duration(random.between(-5, mood == 3 ? 60 : 400));
    }
  }
};

// Late rows, class, sum, measure, oldest, minus the size: smaller is better.
using Worth = std::tuple<std::size_t, int, std::int64_t, double, std::size_t, int>;
using Indices = std::vector<std::size_t>;

class Oracle {
 public:
  explicit Oracle(const Snapshot& snapshot) : s_(snapshot), l_(snapshot.limits) {
    for (std::size_t i = 0; i < s_.rows.size(); ++i) {
      const PlannerRow& row = s_.rows[i];
      if (row.units > s_.cost.max_rows() || ends_late(i, alone(i))) {
        hopeless_.insert(i);
      } else if (s_.cost.grant(row.units, column(i)) > l_.free) {
        waiting_.insert(i);
      }
    }
  }

  const std::set<std::size_t>& hopeless() const { return hopeless_; }
  const std::set<std::size_t>& waiting() const { return waiting_; }

  // The best worth under the caps that apply. With `first`: of the plans that run exactly these rows.
  std::optional<Worth> best(const std::optional<Indices>& first = std::nullopt) const {
    if (!hopeless_.empty()) return search(hopeless_, true, first);
    const auto at_knee = search(hopeless_, false, std::nullopt);
    if (at_knee && std::get<0>(*at_knee) > 0) return search(hopeless_, true, first);
    return search(hopeless_, false, first);
  }
  // Fewest missed deadlines when only `dropped` is dropped and the hopeless rows that are kept take part
  // in batches. The first batch must serve someone: a short hopeless row is no way to pass the time.
  std::size_t fewest_misses(const std::set<std::size_t>& dropped) const {
    const auto found = search(dropped, true, std::nullopt);
    return found ? dropped.size() + std::get<0>(*found) : hopeless_.size();
  }

 private:
  std::uint32_t bucket(std::uint32_t length) const {
    for (const std::uint32_t edge : s_.edges) {
      if (length <= edge) return edge;
    }
    std::uint32_t edge = s_.edges.back();
    while (edge < length) edge += s_.edges.back();
    return std::min(edge, 64U);
  }
  // What must be equal, or grows, from row to row of the sorted order.
  std::uint32_t key(std::size_t i) const {
    const std::uint32_t length = s_.rows[i].length;
    if (l_.meet == model::MeetRule::kGroup) return length;
    if (l_.policy == model::Policy::kBuckets) return bucket(length);
    return (length + kPad - 1) / kPad * kPad;
  }
  // Of the sorted order.
  std::pair<std::uint32_t, std::uint32_t> place(std::size_t i) const { return {s_.rows[i].group, key(i)}; }
  std::uint32_t column(std::size_t i) const { return s_.cost.column_of(key(i)); }
  bool only_equals() const {
    return l_.meet == model::MeetRule::kGroup || l_.policy == model::Policy::kBuckets;
  }
  double real(Duration time) const { return std::floor(static_cast<double>(time.count()) * l_.drift); }
  double alone(std::size_t i) const { return real(s_.cost.time(s_.rows[i].units, column(i))); }
  double left(std::size_t i) const { return static_cast<double>((s_.rows[i].deadline - kNow).count()); }
  bool ends_late(std::size_t i, double after) const {
    return s_.rows[i].deadline != kNever && after > left(i);
  }

  std::uint32_t cap(std::uint32_t column, bool wide) const {
    std::uint32_t fit = 0;
    double best = 0;
    const auto rate = [&](std::uint32_t n) {
      return n / static_cast<double>(s_.cost.time(n, column).count());
    };
    for (std::uint32_t n = 1; n <= std::min(l_.max_rows, s_.cost.max_rows()); ++n) {
      if (s_.cost.grant(n, column) > l_.free || s_.cost.time(n, column) > l_.max_batch_time) break;
      fit = n;
      best = std::max(best, rate(n));
    }
    for (std::uint32_t n = 1; n <= fit && !wide; ++n) {
      if (rate(n) >= 0.97 * best) return n;
    }
    return fit;
  }
  std::uint32_t units(const Indices& group) const {
    std::uint32_t sum = 0;
    for (const std::size_t i : group) sum += s_.rows[i].units;
    return sum;
  }
  Duration time(const Indices& group) const { return s_.cost.time(units(group), column(group.back())); }
  bool is_legal(const Indices& group, bool wide) const {
    if (group.size() == 1) return true;
    if (s_.rows[group.front()].group != s_.rows[group.back()].group) return false;
    if (only_equals() && key(group.front()) != key(group.back())) return false;
    return units(group) <= cap(column(group.back()), wide);
  }

  // `first` ends at `end`; the others follow by deadline, at the pace of full batches of their length.
  std::size_t late_after(const Indices& first, double end, Indices others, bool wide) const {
    std::size_t late = 0;
    for (const std::size_t i : first) late += ends_late(i, end) ? 1U : 0U;
    std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(s_.rows[a].deadline, place(a)) < std::pair(s_.rows[b].deadline, place(b));
    });
    double at = end;
    for (const std::size_t i : others) {
      if (ends_late(i, at + alone(i))) {
        ++late;
      } else {
        at += pace(i, wide);
      }
    }
    return late;
  }
  double pace(std::size_t i, bool wide) const {
    const std::uint32_t full = cap(column(i), wide);
    if (s_.rows[i].units >= full) return alone(i);
    return real(s_.cost.time(full, column(i)) * s_.rows[i].units / full);
  }

  Worth worth(const std::vector<Indices>& partition, const Indices& first, bool wide) const {
    const double end = real(time(first));
    std::int64_t sum = 0;
    Indices others;
    for (const Indices& group : partition) {
      sum += time(group).count();
      if (&group != &first) others.insert(others.end(), group.begin(), group.end());
    }
    const std::size_t late = late_after(first, end, others, wide);
    double slack = HUGE_VAL;
    TimePoint oldest = kNow;
    for (const std::size_t i : first) {
      if (s_.rows[i].deadline != kNever) slack = std::min(slack, left(i) - end);
      oldest = std::min(oldest, s_.rows[i].enqueued);
    }
    const std::size_t front = *std::min_element(first.begin(), first.end());
    const int size = -static_cast<int>(units(first));
    if (slack <= real(l_.max_batch_time)) return {late, 0, sum, slack, front, size};
    if (kNow - oldest > l_.max_age) return {late, 1, sum, 0, front, size};
    return {late, 2, sum, static_cast<double>(time(first).count()) / units(first), front, size};
  }

  std::optional<Worth> search(const std::set<std::size_t>& dropped, bool wide,
                              const std::optional<Indices>& wanted) const {
    Indices order;
    for (std::size_t i = 0; i < s_.rows.size(); ++i) {
      if (!dropped.contains(i) && !waiting_.contains(i) && s_.rows[i].units <= s_.cost.max_rows())
        order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    std::optional<Worth> best;
    if (order.empty()) return best;
    for (std::uint32_t cuts = 0; cuts < 1U << (order.size() - 1); ++cuts) {
      std::vector<Indices> partition(1);
      for (std::size_t i = 0; i < order.size(); ++i) {
        partition.back().push_back(order[i]);
        if (i + 1 < order.size() && (cuts >> i & 1U) != 0) partition.emplace_back();
      }
      if (!std::all_of(partition.begin(), partition.end(),
                       [&](const Indices& g) { return is_legal(g, wide); }))
        continue;
      for (const Indices& first : partition) {
        if (wanted && first != *wanted) continue;
        if (std::all_of(first.begin(), first.end(), [&](std::size_t i) { return hopeless_.contains(i); }))
          continue;
        const Worth found = worth(partition, first, wide);
        if (!best || found < *best) best = found;
      }
    }
    return best;
  }

  const Snapshot& s_;
  const PlanLimits& l_;
  std::set<std::size_t> hopeless_;
  std::set<std::size_t> waiting_;
};

TEST(PlanProperty, AgreesWithTheBruteForceOptimumOfTheWholeObjective) {
  PlanScratch scratch;
  std::size_t runs = 0;
  std::size_t late = 0;
  std::size_t urgent = 0;
  std::size_t aged = 0;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    const Snapshot snapshot(seed);
    const Oracle oracle(snapshot);
    const Plan plan = plan_lane({.rows = snapshot.rows}, snapshot.limits, kNow, scratch);
    ASSERT_EQ(oracle.hopeless(), std::set<std::size_t>(plan.drops.begin(), plan.drops.end()))
        << "seed " << seed;
    const auto best = oracle.best();
    ASSERT_EQ(best.has_value(), plan.kind == Plan::Kind::kRun) << "seed " << seed;
    if (!best) continue;
    const auto reached = oracle.best(Indices(plan.batch.begin(), plan.batch.end()));
    ASSERT_TRUE(reached.has_value()) << "seed " << seed << ": the batch is no group of a legal plan";
    ASSERT_EQ(*best, *reached) << "seed " << seed;
    ++runs;
    late += std::get<0>(*best) > 0 ? 1U : 0U;
    urgent += std::get<1>(*best) == 0 ? 1U : 0U;
    aged += std::get<1>(*best) == 1 ? 1U : 0U;
  }
  // The snapshots must exercise every level of the objective, or the agreement says little.
  EXPECT_GT(runs, 15000U);
  EXPECT_GT(late, 700U);
  EXPECT_GT(urgent, 3000U);
  EXPECT_GT(aged, 2000U);
}

TEST(PlanProperty, DroppingTheHopelessRowsCostsNoDeadline) {
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const Snapshot snapshot(seed);
    const Oracle oracle(snapshot);
    const Indices hopeless(oracle.hopeless().begin(), oracle.hopeless().end());
    const std::size_t all_dropped = oracle.fewest_misses(oracle.hopeless());
    for (std::uint32_t kept = 1; kept < 1U << hopeless.size(); ++kept) {
      std::set<std::size_t> dropped;
      for (std::size_t i = 0; i < hopeless.size(); ++i) {
        const bool must_drop = snapshot.rows[hopeless[i]].units > snapshot.cost.max_rows();
        if (must_drop || (kept >> i & 1U) == 0) dropped.insert(hopeless[i]);
      }
      ASSERT_LE(all_dropped, oracle.fewest_misses(dropped)) << "seed " << seed << " kept " << kept;
    }
  }
}

TEST(PlanProperty, AlwaysSetsABatchADropOrAWakeTimeAndKeepsEveryBound) {
  PlanScratch scratch;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    Snapshot snapshot(seed);
    Random random(seed);
    snapshot.limits.policy = static_cast<model::Policy>(random.below(3));
    snapshot.limits.a_worker_is_idle = random.below(4) != 0;
    snapshot.limits.max_wait = Duration(random.between(0, 100));
    const Plan plan = plan_lane({.rows = snapshot.rows}, snapshot.limits, kNow, scratch);
    const bool is_set =
        plan.kind == Plan::Kind::kRun ? !plan.batch.empty() : !plan.drops.empty() || plan.wake_at != kNever;
    ASSERT_TRUE(is_set) << "seed " << seed;
    if (plan.kind == Plan::Kind::kWake) {
      ASSERT_GT(plan.wake_at, kNow) << "seed " << seed;
    }
    if (plan.kind != Plan::Kind::kRun) continue;
    ASSERT_LE(plan.grant, snapshot.limits.free) << "seed " << seed;
    const bool is_single = plan.batch.size() == 1;
    ASSERT_TRUE(is_single || plan.units <= snapshot.limits.max_rows) << "seed " << seed;
    const bool is_bounded = snapshot.limits.policy != model::Policy::kFifo && !is_single;
    ASSERT_TRUE(!is_bounded || plan.time <= snapshot.limits.max_batch_time) << "seed " << seed;
    for (const std::uint16_t i : plan.batch) {
      ASSERT_LE(snapshot.rows[i].length, plan.length) << "seed " << seed;
      ASSERT_EQ(snapshot.rows[plan.batch[0]].group, snapshot.rows[i].group) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tonnage::planner
