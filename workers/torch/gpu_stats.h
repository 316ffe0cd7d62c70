// SPDX-License-Identifier: Apache-2.0
// GpuStats: what the caching allocator of a device says, and what it can be told. cuda_stats.h asks libtorch;
// tests stand in a fake.
// Threads: the worker's one.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace tonnage::torch_worker {

// An allocation that failed for good.
struct Refused {
  Bytes asked;     // of the device: whole segments
  Bytes reserved;  // at that moment, with nothing cached left to release
};

class GpuStats {
 public:
  virtual ~GpuStats() = default;
  virtual Bytes total() const = 0;      // of the device
  virtual Bytes allocated() const = 0;  // in tensors now, rounded as the allocator rounds (512 bytes)
  virtual Bytes allocated_peak() const = 0;
  virtual Bytes reserved() const = 0;          // taken from the device: in tensors, or cached
  virtual std::uint64_t refusals() const = 0;  // so far
  virtual Refused last_refused() const = 0;
  // The device answers nothing any more (an assert in a kernel, a lost bus): only a new process helps.
  virtual bool is_broken() const = 0;

  virtual void reset_peak() = 0;
  // Reserved bytes may not go above this. What is reserved already stays.
  virtual void limit_reserved(Bytes bytes) = 0;
  virtual void release_cached() = 0;
};

}  // namespace tonnage::torch_worker
