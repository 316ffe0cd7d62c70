// SPDX-License-Identifier: Apache-2.0
// GpuMeter: the grant of a batch on a device, held by a limit on what the allocator may reserve.
//
// Not run on a GPU yet: tested against a fake GpuStats; tests/gpu/acceptance.sh is for the day there is one.
//
// Promises:
//  1. During a batch reserved bytes stay at or below live + grant + kSegmentSlack, or at what was reserved
//     before it if that is more and could not be released. So a grant is capped, not exact to the byte.
//  2. Why a batch failed is read from the allocator's own count of refusals, never from texts.
//  3. reserved() is the lease: it falls by trim() alone.
// Threads: one. Source: PyTorch's CUDA caching allocator (2 MiB and 20 MiB segments, fraction per process).
#pragma once

#include "torch/gpu_stats.h"

namespace tonnage::torch_worker {

// The allocator takes memory from the device in segments; the last one is rarely full.
inline constexpr Bytes kSegmentSlack = mib(20);

class GpuMeter {
 public:
  explicit GpuMeter(GpuStats& stats) : stats_(stats) {}

  void begin(Bytes grant);
  void end();

  Bytes live() const { return stats_.allocated(); }
  Bytes reserved() const { return stats_.reserved(); }
  // Highest live bytes since begin(), minus live bytes then.
  Bytes peak() const { return saturating_sub(stats_.allocated_peak(), baseline_); }
  bool over_grant() const { return stats_.refusals() > refusals_; }
  // What the refused allocation would have made of the peak; zero without a refusal.
  Bytes needed() const { return over_grant() ? peak() + stats_.last_refused() : Bytes(); }
  bool is_broken() const { return stats_.is_broken(); }
  void trim() { stats_.release_cached(); }

 private:
  GpuStats& stats_;
  Bytes baseline_;
  std::uint64_t refusals_ = 0;
};

}  // namespace tonnage::torch_worker
