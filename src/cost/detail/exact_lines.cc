// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/exact_lines.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

namespace tonnage::cost::detail {
namespace {

constexpr std::size_t kLeastPoints = 3;

Line through(const MeasuredPeak& first, const MeasuredPeak& second) {
  const double lengths = static_cast<double>(second.shape.length) - first.shape.length;
  return {first.shape, second.shape, first.bytes, (second.bytes - first.bytes) / lengths};
}

}  // namespace

std::optional<double> Line::value(Shape shape) const {
  if (shape.rows != from.rows || shape.length < from.length || shape.length > to.length) return std::nullopt;
  return at_from + per_length * (shape.length - from.length);
}

std::vector<Line> exact_lines(std::vector<MeasuredPeak> peaks, double tolerance) {
  std::ranges::sort(peaks, {}, [](const MeasuredPeak& peak) {
    return std::make_tuple(peak.shape.rows, peak.shape.length);
  });
  std::vector<Line> lines;
  for (std::size_t first = 0; first + kLeastPoints <= peaks.size();) {
    const auto goes_on = [&](const MeasuredPeak& next, Line line) {
      line.to = next.shape;
      const auto expected = line.value(next.shape);
      return next.is_odd && expected && std::abs(*expected - next.bytes) <= tolerance * next.whole;
    };
    Line line = through(peaks[first], peaks[first + 1]);
    std::size_t last = first;
    while (peaks[first].is_odd && last + 1 < peaks.size() && goes_on(peaks[last + 1], line)) ++last;
    line.to = peaks[last].shape;
    if (last - first + 1 >= kLeastPoints) lines.push_back(line);
    first = std::max(last, first + 1);
  }
  return lines;
}

}  // namespace tonnage::cost::detail
