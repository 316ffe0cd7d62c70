// SPDX-License-Identifier: Apache-2.0
// MemoryMeter: live and peak tensor bytes of this process, and the grant that a batch may not exceed.
//
// Promises, beside those of a TensorMemory:
//  1. take() counts before the memory exists and refuses what would put the batch above its grant;
//     a refusal sets the batch's over-grant flag with the bytes it would have needed.
//  2. Outside a batch nothing is refused: weights, caches and late releases are only counted.
// Threads: take, give_back and the flags from any thread; begin and end from the worker's one.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.h"
#include "kit/tensor_memory.h"

namespace tonnage::kit {

class MemoryMeter final : public TensorMemory {
 public:
  constexpr MemoryMeter() = default;
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  // False: refused, nothing was counted.
  bool take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { live_.fetch_sub(bytes, std::memory_order_relaxed); }
  // The kernel refused memory that the grant allowed.
  void flag_pressure() { pressure_.store(true, std::memory_order_relaxed); }

  // Clears the flags; from now on live may rise by `grant` at most.
  void begin(Bytes grant) override;
  // Lifts the limit; peak and flags stay readable until the next begin().
  void end() override { limit_.store(kNoLimit, std::memory_order_relaxed); }

  Bytes live() const override { return Bytes(live_.load(std::memory_order_relaxed)); }
  Bytes peak() const override;
  bool over_grant() const override { return needed_.load(std::memory_order_relaxed) != 0; }
  Bytes needed() const override { return Bytes(needed_.load(std::memory_order_relaxed)); }
  bool pressure() const override { return pressure_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kNoLimit = ~0ULL;

  std::atomic<std::uint64_t> live_{0};
  std::atomic<std::uint64_t> highest_{0};
  std::atomic<std::uint64_t> limit_{kNoLimit};
  std::atomic<std::uint64_t> needed_{0};
  std::atomic<bool> pressure_{false};
  std::uint64_t baseline_ = 0;  // written between batches only
};

}  // namespace tonnage::kit
