// SPDX-License-Identifier: Apache-2.0
// PoisonMemory: hashes of what ended a worker alone, a row or a request whose rows stay together; the
// same is refused without being run.
// Promises: at most kEntries, the oldest forgotten first; forgotten after kLifetime. Threads: the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "base/time.h"
#include "request/request.h"

namespace tonnage::pipeline {

// Content of rows `first` to `first` + `count` over all inputs (FNV-1a, 64 bits).
std::uint64_t content_hash(const request::Request& request, std::uint32_t first, std::uint32_t count);

class PoisonMemory {
 public:
  static constexpr std::size_t kEntries = 1024;
  static constexpr Duration kLifetime = std::chrono::minutes(10);

  void remember(std::uint64_t hash, TimePoint now);
  bool knows(std::uint64_t hash, TimePoint now);
  bool empty() const { return until_.empty(); }

 private:
  void forget_old(TimePoint now);
  std::unordered_map<std::uint64_t, TimePoint> until_;
  std::deque<std::uint64_t> order_;
};

}  // namespace tonnage::pipeline
