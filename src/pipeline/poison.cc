// SPDX-License-Identifier: Apache-2.0
#include "pipeline/poison.h"

namespace tonnage::pipeline {

std::uint64_t content_hash(const request::Request& request, std::uint32_t first, std::uint32_t count) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto mix = [&hash](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  for (const auto& input : request.inputs) {
    mix(input.has_value() ? 1 : 0);  // the same bytes in another input are another row
    if (!input) continue;
    for (std::uint32_t row = first; row < first + count; ++row) {
      const ByteView bytes = input->row(row);
      // Rows that are cut elsewhere are other rows, though their bytes are the same.
      for (std::size_t size = bytes.size(); size > 0; size >>= 8U) mix(static_cast<std::uint8_t>(size));
      for (const std::byte byte : bytes) mix(static_cast<std::uint8_t>(byte));
    }
  }
  for (std::uint32_t row = first; !request.sizes.empty() && row < first + count; ++row) {
    for (const std::uint32_t size : request.row_size(row).at) {  // the same bytes in another shape
      for (unsigned shift = 0; shift < 32; shift += 8) mix(static_cast<std::uint8_t>(size >> shift));
    }
  }
  return hash;
}

void PoisonMemory::remember(std::uint64_t hash, TimePoint now) {
  forget_old(now);
  if (!until_.contains(hash)) order_.push_back(hash);
  until_[hash] = now + kLifetime;
  while (order_.size() > kEntries) {
    until_.erase(order_.front());
    order_.pop_front();
  }
}

bool PoisonMemory::knows(std::uint64_t hash, TimePoint now) {
  forget_old(now);
  const auto found = until_.find(hash);
  return found != until_.end() && found->second > now;
}

void PoisonMemory::forget_old(TimePoint now) {
  while (!order_.empty()) {
    const auto found = until_.find(order_.front());
    if (found != until_.end() && found->second > now) return;
    if (found != until_.end()) until_.erase(found);
    order_.pop_front();
  }
}

}  // namespace tonnage::pipeline
