// SPDX-License-Identifier: Apache-2.0
// Lateness: how many rows miss their deadline when a group goes first. Rows of the group are late when
// it ends after their deadline. All others follow in the order of their deadlines, each at the pace of a
// full batch of its length; one that could not even end alone at its turn is late and takes no time.
//
// Judged over the kMostUrgent earliest deadlines: what lies behind them is for the plans to come.
#pragma once

#include <array>

#include "planner/detail/state.h"

namespace tonnage::planner {

class Lateness {
 public:
  // `state.caps` are found. `reach`: no group takes longer than this (drifted).
  Lateness(const PlanLimits& limits, std::int64_t reach, PlanScratch::State& state);

  // False: whatever goes first, nothing is late.
  bool is_possible() const { return watched_ > 0; }
  // Stops counting beyond `enough`. `time` is drifted.
  std::uint32_t count(std::size_t begin, std::size_t end, std::int64_t time, std::uint32_t enough) {
    if (watched_ == 0) return 0;
    if (const std::uint32_t least = at_least(begin, end, time); least > enough) return least;
    const Urgent* const rows = state_.urgent.data();
    const std::size_t size = end - begin;
    std::uint32_t late = 0;
    std::int64_t at = time;
    // Without branches: whether a row is inside or late follows no pattern that a processor could learn.
    for (std::size_t i = 0; i < watched_ && late <= enough; ++i) {
      const Urgent& row = rows[i];
      const bool is_inside = row.row - begin < size;
      const bool is_late = (is_inside ? time : at) > (is_inside ? row.left : row.latest);
      late += static_cast<std::uint32_t>(is_late);
      at += is_inside || is_late ? 0 : row.pace;
    }
    return late;
  }

 private:
  static constexpr std::size_t kCells = 16;
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  // A bound that costs a look-up: rows of the group at best all in time, others at best as many as any
  // order and choice of all of them could bring in time behind a group that is no longer than this one.
  std::uint32_t at_least(std::size_t begin, std::size_t end, std::int64_t time) {
    const std::size_t cell = std::min(static_cast<std::size_t>(time / cell_), kCells - 1);
    std::uint32_t& in_time = in_time_[cell];
    if (in_time == kUnknown) in_time = most_in_time(static_cast<std::int64_t>(cell) * cell_);
    const std::uint32_t inside = state_.watched_before[end] - std::uint32_t{state_.watched_before[begin]};
    const auto watched = static_cast<std::uint32_t>(watched_);
    return watched - std::min(watched, in_time + inside);
  }
  std::uint32_t most_in_time(std::int64_t start);

  PlanScratch::State& state_;
  std::size_t watched_ = 0;  // rows behind these can never be late in this plan
  std::int64_t cell_;        // of group times, for in_time_
  std::array<std::uint32_t, kCells> in_time_;
};

}  // namespace tonnage::planner
