// SPDX-License-Identifier: Apache-2.0
// Non-negative least squares for four features, exactly: with so few, every set of active features is
// solved and the best feasible one wins, so there is no iteration to go wrong.
// Same optimum as Lawson & Hanson 1974, chapter 23. Pure.
#pragma once

#include <array>
#include <span>

#include "cost/table.h"

namespace tonnage::cost::detail {

inline constexpr std::size_t kFeatures = 4;
using Plane = std::array<double, kFeatures>;  // coefficients of [1, B, B·P, B·P²], none negative

Plane features_of(Shape shape);
double value_of(const Plane& plane, Shape shape);

struct Point {
  Shape shape;
  double value = 0;
  double weight = 1;  // of the squared *relative* error
};

// Minimises Σ weight · ((fit − value) / value)². Of two sets that fit equally well the smaller one is
// taken: it extrapolates better; of two equally small ones that with B·P. No points: all zero.
Plane fit_plane(std::span<const Point> points);

}  // namespace tonnage::cost::detail
