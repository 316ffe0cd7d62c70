// SPDX-License-Identifier: Apache-2.0
// The peak of a batch as a maximum over program points, each a plane over [1, B, B·P, B·P²].
// Source: partition and refit, Magnani & Boyd 2009 (convex piecewise-linear fitting). Pure.
#pragma once

#include <span>
#include <vector>

#include "cost/detail/nnls.h"

namespace tonnage::cost::detail {

using Planes = std::vector<Plane>;

double value_of(const Planes& planes, Shape shape);

// As few planes (at most three) as keep every point within `good_enough`; else the best found.
Planes fit_planes(std::span<const Point> points, double good_enough);
// Nearly above all points: for models whose peak depends on values, where a mean would be half wrong.
Planes fit_upper(std::span<const Point> points);

}  // namespace tonnage::cost::detail
