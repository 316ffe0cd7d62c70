// SPDX-License-Identifier: Apache-2.0
// DeadlineHeap: the earliest deadline of all rows, with removal by handle. A binary heap that tells
// each slot where it sits, so that a row which leaves early leaves nothing behind.
// Threads: the loop.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"

namespace tonnage::lane {

class DeadlineHeap {
 public:
  using Slot = std::uint32_t;

  bool is_empty() const { return heap_.empty(); }
  TimePoint earliest() const { return heap_.empty() ? kNever : heap_.front().first; }
  Slot earliest_slot() const { return heap_.front().second; }

  // A slot without a deadline (kNever) is not kept.
  void add(Slot slot, TimePoint deadline) {
    if (slot >= place_.size()) place_.resize(slot + 1, kAbsent);
    if (deadline == kNever) return;
    heap_.emplace_back(deadline, slot);
    rise(heap_.size() - 1);
  }
  void remove(Slot slot) {
    if (slot >= place_.size() || place_[slot] == kAbsent) return;
    const std::size_t hole = std::exchange(place_[slot], kAbsent);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.second == slot) return;
    put(hole, last);
    rise(hole);
    sink(place_[last.second]);
  }

 private:
  using Entry = std::pair<TimePoint, Slot>;
  static constexpr std::size_t kAbsent = ~std::size_t{0};

  void put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    place_[entry.second] = at;
  }
  void rise(std::size_t at) {
    const Entry entry = heap_[at];
    for (; at > 0 && entry.first < heap_[(at - 1) / 2].first; at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
    put(at, entry);
  }
  void sink(std::size_t at) {
    const Entry entry = heap_[at];
    for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].first < heap_[child].first) ++child;
      if (entry.first <= heap_[child].first) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> place_;  // by slot
};

}  // namespace tonnage::lane
