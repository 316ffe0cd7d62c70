// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/length_part.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace tonnage::cost::detail {
namespace {

constexpr std::size_t kLeastDifferences = 4;
constexpr std::size_t kLeastLengths = 2;  // with more than one number of rows
constexpr double kMatters = 0.005;        // of the peak of one row

using ByLength = std::map<std::uint32_t, std::vector<Point>>;

// What more rows add, at each length.
std::vector<Point> differences(const ByLength& by_length) {
  std::vector<Point> found;
  for (const auto& [length, points] : by_length) {
    for (std::size_t i = 1; i < points.size(); ++i) {
      const Shape more{points[i].shape.rows - points[i - 1].shape.rows, length};
      found.push_back({more, points[i].value - points[i - 1].value, 1});
    }
  }
  return found;
}

bool meets(const Plane& plane, std::span<const Point> points, double tolerance) {
  return std::ranges::all_of(points, [&](const Point& point) {
    return point.value > 0 && std::abs(value_of(plane, point.shape) - point.value) <= tolerance * point.value;
  });
}

}  // namespace

std::optional<LengthPart> LengthPart::find(std::span<const Point> points, double tolerance) {
  ByLength by_length;
  for (const Point& point : points) by_length[point.shape.length].push_back(point);
  for (auto& [length, of_length] : by_length)
    std::ranges::sort(of_length, {}, [](const Point& point) { return point.shape.rows; });
  const auto lengths =
      std::ranges::count_if(by_length, [](const auto& entry) { return entry.second.size() > 1; });
  const std::vector<Point> added = differences(by_length);
  if (added.size() < kLeastDifferences || static_cast<std::size_t>(lengths) < kLeastLengths)
    return std::nullopt;

  LengthPart found;
  found.per_row_ = fit_plane(added);
  found.per_row_[0] = 0;
  if (!meets(found.per_row_, added, tolerance)) return std::nullopt;
  std::vector<MeasuredPeak> parts;
  for (const auto& [length, of_length] : by_length) {
    double least = of_length.front().value;
    double most = -least;
    for (const Point& point : of_length) {
      const double part = point.value - value_of(found.per_row_, point.shape);
      least = std::min(least, part);
      most = std::max(most, part);
    }
    const double allowed = tolerance * of_length.front().value;
    if (most - least > allowed || most < -allowed) return std::nullopt;
    found.steps_.push_back({length, std::max(0.0, most)});
    parts.push_back({{1, length}, found.steps_.back().bytes, true, of_length.front().value});
  }
  found.lines_ = exact_lines(std::move(parts), tolerance);
  return found;
}

double LengthPart::of_length(std::uint32_t length) const {
  for (const Line& line : lines_) {
    if (const auto bytes = line.value({1, length})) return *bytes;
  }
  const auto next = std::ranges::lower_bound(steps_, length, {}, &Step::length);
  if (next == steps_.end()) return steps_.back().bytes;
  if (next->length == length || next == steps_.begin()) return next->bytes;
  return std::max(next->bytes, std::prev(next)->bytes);
}

double LengthPart::value(Shape shape) const { return value_of(per_row_, shape) + of_length(shape.length); }

std::vector<Gap> LengthPart::gaps() const {
  std::vector<Gap> found;
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    const Step& shorter = steps_[i - 1];
    const Step& longer = steps_[i];
    const bool is_known = std::ranges::any_of(lines_, [&](const Line& line) {
      return line.from.length <= shorter.length && line.to.length >= longer.length;
    });
    const double change = std::abs(longer.bytes - shorter.bytes);
    if (!is_known && change > kMatters * value({1, longer.length}))
      found.push_back({1, shorter.length, longer.length});
  }
  return found;
}

}  // namespace tonnage::cost::detail
