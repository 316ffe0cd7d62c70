// SPDX-License-Identifier: Apache-2.0
// Ladder: how far a model is degraded, as a pure state machine over batches.
//
// Promises:
//  1. The first event of a cause moves nothing (the batch is split and retried); a second of the same
//     cause within kWindow batches goes down one step at once.
//  2. Steps: ceiling halved, again and again, down to a batch of one; then refusing (503).
//  3. Up one step after `wait` clean batches, as a probe; a probe that fails doubles the wait (to
//     kMaxWait), a probe that holds for kWindow batches resets it.
//  4. A ceiling restored from before a restart is a hint: it is probed like any other.
// Threads: the loop.
#pragma once

#include <array>
#include <cstdint>

namespace tonnage::pipeline {

enum class Trouble : std::uint8_t { kOverGrant, kPressure };

class Ladder {
 public:
  static constexpr std::uint32_t kWindow = 32;
  static constexpr std::uint32_t kMaxWait = 4096;

  explicit Ladder(std::uint32_t max_rows) : max_rows_(max_rows) {}

  // Rows that a batch may have now; 0: refuse.
  std::uint32_t max_rows() const;
  std::uint32_t step() const { return step_; }
  bool is_refusing() const { return max_rows() == 0; }

  void clean_batch();
  // True when the ladder went down.
  bool trouble(Trouble cause);
  // A refusing model tries one batch again after this many refusals.
  void refused();
  // Also without traffic: a refusing model is not ready, so nobody may come to be refused.
  void time_to_probe();
  void restore(std::uint32_t step);

 private:
  std::uint32_t last_step() const;
  void go_down();

  std::uint32_t max_rows_;
  std::uint32_t step_ = 0;
  std::uint64_t batches_ = 0;
  std::array<std::uint64_t, 2> last_event_{};  // batch number + 1 of the last event by cause; 0: none
  std::uint32_t clean_ = 0;
  std::uint32_t wait_ = kWindow;
  bool probing_ = false;
};

}  // namespace tonnage::pipeline
