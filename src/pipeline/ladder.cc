// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ladder.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tonnage::pipeline {

std::string_view rung_name(Rung rung) {
  switch (rung) {
    case Rung::kFull: return "full";
    case Rung::kCachesReleased: return "caches_released";
    case Rung::kLowered: return "lowered";
    case Rung::kSingle: return "single";
    case Rung::kResting: return "resting";
  }
  return "unknown";
}

// Step 0 is full, step 1 has released caches, and each further one halves the ceiling, down to one row.
std::uint32_t Ladder::resting_step() const {
  return static_cast<std::uint32_t>(std::bit_width(std::max(max_rows_, 1U))) + 1;
}

std::uint32_t Ladder::rows_at(std::uint32_t step) const {
  return step <= 1 ? max_rows_ : std::max(max_rows_ >> (step - 1), 1U);
}

std::uint32_t Ladder::max_rows() const { return is_resting() ? 0 : rows_at(step_); }

Rung Ladder::rung() const {
  if (step_ == 0) return Rung::kFull;
  if (step_ >= resting_step()) return Rung::kResting;
  if (step_ == 1) return Rung::kCachesReleased;
  return rows_at(step_) == 1 ? Rung::kSingle : Rung::kLowered;
}

void Ladder::clean_batch(TimePoint now) {
  ++batches_;
  if (step_ == 0 && !probing_) return;
  ++clean_;
  if (probing_ && clean_ >= kWindow) {
    probing_ = false;
    wait_ = kWindow;
  }
  if (step_ > 0 && clean_ >= wait_ && now >= next_climb()) climb(now);
}

bool Ladder::trouble(Trouble cause, std::uint32_t rows) {
  ++batches_;
  clean_ = 0;
  if (is_resting()) return false;  // it ran already when the model was laid to rest
  if (probing_) {
    wait_ = std::min(wait_ * 2, kMaxWait);
    go_down(cause, rows);
    return true;
  }
  std::uint64_t& last = last_event_.at(static_cast<std::size_t>(cause));
  const bool repeated = last != 0 && batches_ - last <= kWindow;
  last = batches_;
  if (repeated) go_down(cause, rows);
  return repeated;
}

void Ladder::turned_away(TimePoint now) {
  if (is_resting() && ++clean_ >= wait_) time_to_probe(now);
}

void Ladder::time_to_probe(TimePoint now) {
  if (is_resting() && now >= next_climb()) climb(now);
}

void Ladder::climb(TimePoint now) {
  paid_until_ = std::max(paid_until_, now) + kClimbEvery;
  --step_;
  learned_step_ = std::min(learned_step_, step_);
  clean_ = 0;
  probing_ = true;
}

void Ladder::go_down(Trouble cause, std::uint32_t rows) {
  do {
    ++step_;
  } while (rung() == Rung::kLowered && rows > 1 && rows_at(step_) >= rows);
  if (cause == Trouble::kOverGrant) learned_step_ = step_;
  probing_ = false;
  last_event_ = {};
}

std::uint32_t Ladder::learned_ceiling() const { return learned_step_ <= 1 ? 0 : rows_at(learned_step_); }

void Ladder::restore(std::uint32_t ceiling) {
  step_ = 0;
  if (ceiling == 0) ceiling = max_rows_;
  // Never restored into resting: a restart deserves at least a batch of one.
  while (rows_at(step_) > ceiling) ++step_;
  learned_step_ = step_;
}

}  // namespace tonnage::pipeline
