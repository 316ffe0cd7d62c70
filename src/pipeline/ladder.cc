// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ladder.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tonnage::pipeline {

// Steps 0 … log2(max_rows) halve the ceiling down to one row; one more refuses.
std::uint32_t Ladder::last_step() const {
  return static_cast<std::uint32_t>(std::bit_width(std::max(max_rows_, 1U)));
}

std::uint32_t Ladder::max_rows() const { return step_ >= last_step() ? 0 : std::max(max_rows_ >> step_, 1U); }

void Ladder::clean_batch() {
  ++batches_;
  if (step_ == 0 && !probing_) return;
  ++clean_;
  if (probing_ && clean_ >= kWindow) {
    probing_ = false;
    wait_ = kWindow;
  }
  if (step_ > 0 && clean_ >= wait_) {
    --step_;
    clean_ = 0;
    probing_ = true;
  }
}

bool Ladder::trouble(Trouble cause) {
  ++batches_;
  clean_ = 0;
  if (probing_) {
    wait_ = std::min(wait_ * 2, kMaxWait);
    go_down();
    return true;
  }
  std::uint64_t& last = last_event_.at(static_cast<std::size_t>(cause));
  const bool repeated = last != 0 && batches_ - last <= kWindow;
  last = batches_;
  if (!repeated) return false;
  go_down();
  return true;
}

void Ladder::refused() {
  if (is_refusing() && ++clean_ >= wait_) time_to_probe();
}

void Ladder::time_to_probe() {
  if (!is_refusing()) return;
  --step_;
  clean_ = 0;
  probing_ = true;
}

void Ladder::go_down() {
  step_ = std::min(step_ + 1, last_step());
  probing_ = false;
  last_event_ = {};
}

void Ladder::restore(std::uint32_t step) {
  // Never restored into refusing: a restart deserves at least a batch of one.
  step_ = std::min(step, last_step() - 1);
}

}  // namespace tonnage::pipeline
