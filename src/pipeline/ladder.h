// SPDX-License-Identifier: Apache-2.0
// Ladder: how far a model is degraded, as a pure state machine over batches and time.
//
// Promises:
//  1. The first event of a cause moves nothing (the batch is split and retried); a second of the same
//     cause within kWindow batches goes down one step at once.
//  2. Steps: caches released; ceiling halved, again and again, down to a batch of one (halvings that
//     the failed batch would not have felt are skipped); then resting: a fallback answers, or 503.
//  3. Up one step after `wait` clean batches, as a probe; a probe that fails doubles the wait (to
//     kMaxWait), a probe that holds for kWindow batches resets it.
//  4. Whatever the conditions do: kBurst steps up, then one each kClimbEvery, and never more steps down
//     than up and the height of the ladder. So in the long run it moves less than once a minute.
//  5. A ceiling that over-grants taught outlives a restart as a hint: it is probed like any other.
//     Pressure is of the machine and the hour, and is forgotten.
// Threads: the loop.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace tonnage::pipeline {

enum class Trouble : std::uint8_t { kOverGrant, kPressure };
enum class Rung : std::uint8_t { kFull, kCachesReleased, kLowered, kSingle, kResting };

std::string_view rung_name(Rung rung);

class Ladder {
 public:
  static constexpr std::uint32_t kWindow = 32;
  static constexpr std::uint32_t kMaxWait = 4096;
  static constexpr int kBurst = 16;
  static constexpr Duration kClimbEvery = seconds(128);

  explicit Ladder(std::uint32_t max_rows) : max_rows_(max_rows) {}

  // Rows that a batch may have now; 0: none may run.
  std::uint32_t max_rows() const;
  std::uint32_t step() const { return step_; }
  Rung rung() const;
  bool is_resting() const { return rung() == Rung::kResting; }

  void clean_batch(TimePoint now);
  // A batch of `rows` failed. True when the ladder went down.
  bool trouble(Trouble cause, std::uint32_t rows);
  // A resting model tries one batch again after this many requests that it did not run.
  void turned_away(TimePoint now);
  // Also without traffic: a resting model is not ready, so nobody may come to be turned away.
  void time_to_probe(TimePoint now);
  // Before this no probe begins.
  TimePoint next_climb() const { return paid_until_ - (kBurst - 1) * kClimbEvery; }

  // The ceiling to remember, in rows, and to begin with after a restart; 0: none was learned, and the
  // model may have as many rows as it is allowed then.
  std::uint32_t learned_ceiling() const;
  void restore(std::uint32_t ceiling);

 private:
  std::uint32_t resting_step() const;
  std::uint32_t rows_at(std::uint32_t step) const;
  void go_down(Trouble cause, std::uint32_t rows);
  void climb(TimePoint now);

  std::uint32_t max_rows_;
  std::uint32_t step_ = 0;
  std::uint32_t learned_step_ = 0;  // at most step_
  std::uint64_t batches_ = 0;
  std::array<std::uint64_t, 2> last_event_{};  // batch number + 1 of the last event by cause; 0: none
  std::uint32_t clean_ = 0;
  std::uint32_t wait_ = kWindow;
  bool probing_ = false;
  TimePoint paid_until_{};  // each climb pays for kClimbEvery
};

}  // namespace tonnage::pipeline
