// SPDX-License-Identifier: Apache-2.0
// TimeFit: seconds of a batch: a plane over [1, B, B·P, B·P²] through the profiled times. Smooth and
// monotone by its non-negative coefficients; what it misses is the cells' residual (cost_model.cc).
// Pure. Threads: values.
#pragma once

#include <span>

#include "cost/detail/nnls.h"

namespace tonnage::cost::detail {

class TimeFit {
 public:
  // Points in nanoseconds.
  void fit(std::span<const Point> points) { plane_ = fit_plane(points); }
  double nanoseconds(Shape shape) const {
    const double value = value_of(plane_, shape);
    return value < 1 ? 1 : value;
  }

 private:
  Plane plane_{};
};

}  // namespace tonnage::cost::detail
