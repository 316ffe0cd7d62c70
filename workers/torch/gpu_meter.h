// SPDX-License-Identifier: Apache-2.0
// GpuMeter: the grant of a batch on a device, held by a limit on what the allocator may reserve.
//
// Not run on a GPU yet: tested against a fake GpuStats; tests/gpu/acceptance.sh is for the day there is one.
//
// Promises, beside those of a TensorMemory:
//  1. During a batch reserved bytes stay at or below live + grant + wire::kSegmentSlack, or at what was
//  reserved
//     before it if that is more and could not be released. So a grant is capped, not exact to the byte.
//  2. Why a batch failed is read from the allocator's own count of refusals: what would have gone above the
//     limit is over_grant, what the device lacked below it is pressure.
//  3. reserved() is the lease: it falls by trim() alone.
// Threads: one. Source: PyTorch's CUDA caching allocator (2 MiB and 20 MiB segments, fraction per process).
#pragma once

#include "kit/tensor_memory.h"
#include "torch/gpu_stats.h"

namespace tonnage::torch_worker {

class GpuMeter final : public kit::TensorMemory {
 public:
  explicit GpuMeter(GpuStats& stats) : stats_(stats), limit_(stats.total()) {}

  void begin(Bytes grant) override;
  void end() override;

  Bytes live() const override { return stats_.allocated(); }
  Bytes peak() const override { return saturating_sub(stats_.allocated_peak(), baseline_); }
  bool over_grant() const override { return was_refused() && would_be_reserved() > limit_; }
  Bytes needed() const override;
  bool pressure() const override { return was_refused() && would_be_reserved() <= limit_; }
  bool is_broken() const override { return stats_.is_broken(); }

  Bytes reserved() const { return stats_.reserved(); }
  void trim() { stats_.release_cached(); }

 private:
  bool was_refused() const { return stats_.refusals() > refusals_; }
  Bytes would_be_reserved() const;

  GpuStats& stats_;
  Bytes limit_;  // of the batch
  Bytes baseline_;
  std::uint64_t refusals_ = 0;
};

}  // namespace tonnage::torch_worker
