// SPDX-License-Identifier: Apache-2.0
// LengthPart: peaks that are as much for every row, and bytes beside them that depend on the length alone.
//
// A compiled attention keeps scratch for each thread, sized by blocks of the sequence: it jumps with the
// length, and rows do not change it. Where peaks are such a sum to the byte, one row measured at a length
// says what any number of rows takes there. Between two measured lengths it is the line that three of them
// lie on, else the larger of the two. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cost/detail/exact_lines.h"
#include "cost/detail/nnls.h"
#include "cost/gap.h"

namespace tonnage::cost::detail {

class LengthPart {
 public:
  // Nothing where some point is further than `tolerance` (relative) from such a sum, or where they are too
  // few to show it.
  static std::optional<LengthPart> find(std::span<const Point> points, double tolerance);

  double value(Shape shape) const;
  // Where the part changes between two measured lengths.
  std::vector<Gap> gaps() const;

 private:
  struct Step {
    std::uint32_t length = 0;
    double bytes = 0;
  };

  double of_length(std::uint32_t length) const;

  Plane per_row_{};
  std::vector<Step> steps_;  // by length
  std::vector<Line> lines_;  // over steps, as shapes of one row
};

}  // namespace tonnage::cost::detail
