// SPDX-License-Identifier: Apache-2.0
#include "torch/gpu_meter.h"

#include <algorithm>

#include "wire/messages.h"

namespace tonnage::torch_worker {

void GpuMeter::begin(Bytes grant) {
  baseline_ = stats_.allocated();
  refusals_ = stats_.refusals();
  const Bytes allowed = baseline_ + grant + wire::kSegmentSlack;
  // Bytes cached by a larger batch would let this one go above its grant.
  if (stats_.reserved() > allowed) stats_.release_cached();
  limit_ = std::min(stats_.total(), std::max(allowed, stats_.reserved()));
  stats_.limit_reserved(limit_);
  stats_.reset_peak();
}

void GpuMeter::end() { stats_.limit_reserved(stats_.total()); }

Bytes GpuMeter::would_be_reserved() const {
  const Refused refused = stats_.last_refused();
  return refused.reserved + refused.asked;
}

Bytes GpuMeter::needed() const { return over_grant() ? peak() + stats_.last_refused().asked : Bytes(); }

}  // namespace tonnage::torch_worker
