// SPDX-License-Identifier: Apache-2.0
#include "torch/gpu_meter.h"

#include <algorithm>

namespace tonnage::torch_worker {

void GpuMeter::begin(Bytes grant) {
  baseline_ = stats_.allocated();
  refusals_ = stats_.refusals();
  const Bytes limit = baseline_ + grant + kSegmentSlack;
  // Bytes cached by a larger batch would let this one go above its grant.
  if (stats_.reserved() > limit) stats_.release_cached();
  stats_.limit_reserved(std::max(limit, stats_.reserved()));
  stats_.reset_peak();
}

void GpuMeter::end() { stats_.limit_reserved(stats_.total()); }

}  // namespace tonnage::torch_worker
