// SPDX-License-Identifier: Apache-2.0
// Lateness: how many rows miss their deadline when a group goes first. Rows of the group are late when
// it ends after their deadline. All others follow in the order of their deadlines, each at the pace of a
// full batch of its length; one that could not even end alone at its turn is late and takes no time.
//
// Judged over the kMostUrgent earliest deadlines: what lies behind them is for the plans to come.
#pragma once

#include "planner/detail/state.h"

namespace tonnage::planner {

class Lateness {
 public:
  // `state.caps` are found. `reach`: no group takes longer than this (drifted).
  Lateness(const PlanLimits& limits, std::int64_t reach, PlanScratch::State& state);

  // False: whatever goes first, nothing is late.
  bool is_possible() const { return watched_ > 0; }
  // Stops counting beyond `enough`. `time` is drifted.
  std::uint32_t count(std::size_t begin, std::size_t end, std::int64_t time, std::uint32_t enough) const {
    const Urgent* const rows = state_.urgent.data();
    std::uint32_t late = 0;
    std::int64_t at = time;
    for (std::size_t i = 0; i < watched_ && late <= enough; ++i) {
      const Urgent& row = rows[i];
      if (row.row >= begin && row.row < end) {
        late += row.left < time ? 1U : 0U;
      } else if (at + row.alone > row.left) {
        ++late;
      } else {
        at += row.pace;
      }
    }
    return late;
  }

 private:
  const PlanScratch::State& state_;
  std::size_t watched_ = 0;  // rows behind these can never be late in this plan
};

}  // namespace tonnage::planner
