// SPDX-License-Identifier: Apache-2.0
#include "kit/memory_meter.h"

#include <algorithm>

namespace tonnage::kit {
namespace {

void raise_to(std::atomic<std::uint64_t>& cell, std::uint64_t value) {
  std::uint64_t seen = cell.load(std::memory_order_relaxed);
  while (seen < value && !cell.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool MemoryMeter::take(std::uint64_t bytes) {
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  const std::uint64_t before = live_.fetch_add(bytes, std::memory_order_relaxed);
  // Compared this way round so that an absurd size cannot wrap below the limit.
  if (before > limit || bytes > limit - before) {
    live_.fetch_sub(bytes, std::memory_order_relaxed);
    const Bytes needed = Bytes(before) + Bytes(bytes);
    raise_to(needed_, std::max<std::uint64_t>(1, saturating_sub(needed, Bytes(baseline_)).count()));
    return false;
  }
  raise_to(highest_, before + bytes);
  return true;
}

void MemoryMeter::begin(Bytes grant) {
  baseline_ = live_.load(std::memory_order_relaxed);
  highest_.store(baseline_, std::memory_order_relaxed);
  needed_.store(0, std::memory_order_relaxed);
  pressure_.store(false, std::memory_order_relaxed);
  limit_.store((Bytes(baseline_) + grant).count(), std::memory_order_relaxed);
}

Bytes MemoryMeter::peak() const {
  return saturating_sub(Bytes(highest_.load(std::memory_order_relaxed)), Bytes(baseline_));
}

}  // namespace tonnage::kit
