// SPDX-License-Identifier: Apache-2.0
// A lane under random operations does what a plain sorted vector does.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "lane/lane.h"

namespace tonnage::lane {
namespace {

constexpr LaneLimits kLimits{.max_rows = 60, .max_work = milliseconds(400)};

// The naive model: one vector in lane order, searched and sorted from scratch.
class Model {
 public:
  bool push(const std::vector<QueuedRow>& rows) {
    if (rows_.size() + rows.size() > kLimits.max_rows) return false;
    if (work() >= kLimits.max_work) return false;
    put_back(rows);
    return true;
  }
  void put_back(const std::vector<QueuedRow>& rows) {
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    std::stable_sort(rows_.begin(), rows_.end(), [](const QueuedRow& a, const QueuedRow& b) {
      const auto rank = [](const QueuedRow& row) { return row.priority == 0 ? 256 : int{row.priority}; };
      return std::pair(rank(a), a.enqueued) < std::pair(rank(b), b.enqueued);
    });
  }
  std::vector<QueuedRow> take(const std::vector<std::uint16_t>& indices) {
    std::vector<QueuedRow> taken;
    for (const std::uint16_t index : indices) taken.push_back(rows_.at(index));
    const std::set<std::uint16_t, std::greater<>> descending(indices.begin(), indices.end());
    for (const std::uint16_t index : descending) rows_.erase(rows_.begin() + index);
    return taken;
  }
  std::size_t remove(request::RequestId id) {
    return std::erase_if(rows_, [&](const QueuedRow& row) { return row.request == id; });
  }
  Duration work() const {
    Duration sum{0};
    for (const QueuedRow& row : rows_) sum += row.work;
    return sum;
  }
  const std::vector<QueuedRow>& rows() const { return rows_; }

 private:
  std::vector<QueuedRow> rows_;
};

class Pair {
 public:
  explicit Pair(std::uint64_t seed) : random_(seed) {}

  void step() {
    now_ += milliseconds(random_.between(0, 3));
    switch (random_.below(5)) {
      case 0:
      case 1: push(); break;
      case 2: take(); break;
      case 3: {
        const request::RequestId id{.index = static_cast<std::uint32_t>(random_.below(next_ + 1)),
                                    .generation = 7};
        EXPECT_EQ(model_.remove(id), lane_.remove(id));
        break;
      }
      default: give_back();
    }
    compare();
  }

 private:
  void push() {
    std::vector<QueuedRow> rows(static_cast<std::size_t>(random_.between(1, 6)));
    const auto priority = static_cast<std::uint8_t>(random_.below(4));
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      rows[i] = {.request = {.index = next_, .generation = 7},
                 .row = i,
                 .priority = priority,
                 .enqueued = now_,
                 .work = milliseconds(random_.between(1, 20))};
    }
    ++next_;
    EXPECT_EQ(model_.push(rows), lane_.push(rows).is_ok());
  }
  void take() {
    const std::size_t shown = lane_.window(10).size();
    std::vector<std::uint16_t> indices;
    for (std::uint16_t i = 0; i < shown; ++i) {
      if (random_.below(3) == 0) indices.push_back(i);
    }
    held_ = model_.take(indices);
    EXPECT_EQ(held_.size(), lane_.take(indices).size());
  }
  void give_back() {
    model_.put_back(held_);
    lane_.put_back(held_);
    held_.clear();
  }
  void compare() {
    ASSERT_EQ(model_.rows().size(), lane_.rows());
    ASSERT_EQ(model_.work(), lane_.work());
    const std::size_t limit = random_.below(80);
    const auto window = lane_.window(limit);
    ASSERT_EQ(std::min(limit, model_.rows().size()), window.size());
    for (std::size_t i = 0; i < window.size(); ++i) {
      ASSERT_EQ(model_.rows()[i].request, window[i].request) << "row " << i;
      ASSERT_EQ(model_.rows()[i].row, window[i].row) << "row " << i;
    }
  }

  Random random_;
  Lane lane_{kLimits};
  Model model_;
  TimePoint now_{seconds(100)};
  std::uint32_t next_ = 0;
  std::vector<QueuedRow> held_;
};

TEST(LaneProperty, AgreesWithASortedVectorUnderRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Pair pair(seed);
    for (int step = 0; step < 500 && !HasFatalFailure(); ++step) pair.step();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tonnage::lane
