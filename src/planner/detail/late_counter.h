// SPDX-License-Identifier: Apache-2.0
// LateCounter: how many rows miss their deadline when a group goes first. Rows inside it are late when
// it ends after their deadline; all others when even starting alone right after it would be too late.
//
// For a fixed end the group grows to the left and its time with it, so both thresholds only move
// forward: O(rows) per end instead of O(rows) per group.
#pragma once

#include <algorithm>

#include "planner/detail/state.h"

namespace tonnage::planner {

class LateCounter {
 public:
  // `reach`: no group takes longer than this (drifted). 0: no deadline is near, extend() is not called.
  LateCounter(PlanScratch::State& state, double drift, std::int64_t reach) : state_(state) {
    if (reach == 0) return;
    for (std::size_t i = 0; i < state.count; ++i) {
      const Row& row = state.rows[i];
      state.slack_rank[i] = state.left_rank[i] = kNotTight;
      const std::int64_t slack = row.left - drifted(row.alone, drift);
      if (slack >= reach) continue;
      state.by_slack[tight_] = {slack, static_cast<std::uint16_t>(i)};
      state.by_left[tight_] = {row.left, static_cast<std::uint16_t>(i)};
      ++tight_;
    }
    rank(state.by_slack, state.slack_rank);
    rank(state.by_left, state.left_rank);
  }

  void start(std::size_t end) {
    end_ = end;
    slack_passed_ = left_passed_ = outside_saved_ = inside_late_ = 0;
  }
  // The group now begins at `begin` and takes `time` (drifted, never less than before).
  std::uint32_t extend(std::size_t begin, std::int64_t time) {
    if (state_.slack_rank[begin] < slack_passed_) ++outside_saved_;
    if (state_.left_rank[begin] < left_passed_) ++inside_late_;
    pass(state_.by_slack, slack_passed_, outside_saved_, begin, time);
    pass(state_.by_left, left_passed_, inside_late_, begin, time);
    return slack_passed_ - outside_saved_ + inside_late_;
  }

 private:
  using TightRows = std::array<PlanScratch::State::Tight, kMaxWindow>;
  static constexpr std::uint16_t kNotTight = 0xffff;

  void rank(TightRows& rows, std::array<std::uint16_t, kMaxWindow>& ranks) const {
    std::sort(rows.begin(), rows.begin() + tight_, [](const auto& a, const auto& b) { return a.value < b.value; });
    for (std::uint16_t i = 0; i < tight_; ++i) ranks[rows[i].row] = i;
  }
  void pass(const TightRows& rows, std::uint32_t& passed, std::uint32_t& inside, std::size_t begin,
            std::int64_t time) const {
    const auto* const sorted = rows.data();
    std::uint32_t at = passed;
    for (; at < tight_ && sorted[at].value < time; ++at) {
      inside += sorted[at].row - begin < end_ - begin ? 1U : 0U;  // wraps, and is outside, below begin
    }
    passed = at;
  }

  PlanScratch::State& state_;
  std::uint16_t tight_ = 0;
  std::size_t end_ = 0;
  std::uint32_t slack_passed_ = 0;   // tight rows too late to start after the group
  std::uint32_t left_passed_ = 0;    // tight rows too late to end with the group
  std::uint32_t outside_saved_ = 0;  // of slack_passed_, those inside the group
  std::uint32_t inside_late_ = 0;    // of left_passed_, those inside the group
};

}  // namespace tonnage::planner
