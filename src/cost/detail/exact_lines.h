// SPDX-License-Identifier: Apache-2.0
// Lines in the length that peaks of as many rows lie on exactly.
//
// Where a program is another one for few rows, its peaks lie below the planes of all others, on a line of
// their own. Three neighbours that meet one line were decided by the same point of the same program, and so
// is what lies between them. Pure.
#pragma once

#include <optional>
#include <vector>

#include "cost/table.h"

namespace tonnage::cost::detail {

struct Line {
  Shape from;
  Shape to;  // as many rows, longer
  double at_from = 0;
  double per_length = 0;

  std::optional<double> value(Shape shape) const;  // nothing beyond its ends
};

struct MeasuredPeak {
  Shape shape;
  double bytes = 0;
  bool is_odd = false;  // to be explained by a line
  double whole = 0;     // what an error is a share of
};

// Over three or more neighbours each that are odd, met within `tolerance`. `peaks`: distinct shapes.
std::vector<Line> exact_lines(std::vector<MeasuredPeak> peaks, double tolerance);

}  // namespace tonnage::cost::detail
