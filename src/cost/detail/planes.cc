// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/planes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "cost/detail/exact_planes.h"

namespace tonnage::cost::detail {
namespace {

constexpr std::size_t kMaxPlanes = 3;
constexpr int kRounds = 30;
constexpr std::size_t kMostCuts = 12;
constexpr std::size_t kCoarseCuts = 7;
constexpr double kBelow = 0.01;  // weight of a point under the upper fit

double worst_error(const Planes& planes, std::span<const Point> points) {
  double worst = 0;
  for (const Point& point : points) {
    worst = std::max(worst, std::abs(value_of(planes, point.shape) / std::max(point.value, 1.0) - 1));
  }
  return worst;
}

std::size_t highest_plane(const Planes& planes, Shape shape) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < planes.size(); ++i) {
    if (value_of(planes[i], shape) > value_of(planes[best], shape)) best = i;
  }
  return best;
}

Planes fit_groups(std::span<const Point> points, std::span<const std::size_t> group, std::size_t count) {
  Planes planes;
  for (std::size_t g = 0; g < count; ++g) {
    std::vector<Point> members;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (group[i] == g) members.push_back(points[i]);
    }
    if (!members.empty()) planes.push_back(fit_plane(members));
  }
  return planes;
}

// Start: `count` groups, the first ending before `cuts[0]` in the order of length, and so on.
Planes refine(std::span<const Point> sorted, std::span<const std::size_t> cuts) {
  std::vector<std::size_t> group(sorted.size(), 0);
  for (const std::size_t cut : cuts) {
    for (std::size_t i = cut; i < sorted.size(); ++i) ++group[i];
  }
  const std::size_t count = cuts.size() + 1;
  Planes best = fit_groups(sorted, group, count);
  double best_error = worst_error(best, sorted);
  Planes current = best;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::size_t> next(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) next[i] = highest_plane(current, sorted[i].shape);
    if (next == group) break;
    group = next;
    current = fit_groups(sorted, group, count);
    if (const double error = worst_error(current, sorted); error < best_error) {
      best_error = error;
      best = current;
    }
  }
  return best;
}

// Where groups may begin: with a length, where there are a few of them; else on a coarse grid.
std::vector<std::size_t> possible_cuts(std::span<const Point> sorted) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].shape.length != sorted[i - 1].shape.length) cuts.push_back(i);
  }
  if (!cuts.empty() && cuts.size() <= kMostCuts) return cuts;
  cuts.clear();
  const std::size_t step = std::max<std::size_t>(1, sorted.size() / kCoarseCuts);
  for (std::size_t cut = step; cut < sorted.size(); cut += step) cuts.push_back(cut);
  return cuts;
}

// All ways to cut the sorted points into `count` groups.
Planes best_of_cuts(std::span<const Point> sorted, std::size_t count) {
  Planes best;
  double best_error = std::numeric_limits<double>::infinity();
  const auto consider = [&](std::span<const std::size_t> cuts) {
    Planes planes = refine(sorted, cuts);
    if (const double error = worst_error(planes, sorted); error < best_error) {
      best_error = error;
      best = std::move(planes);
    }
  };
  const std::vector<std::size_t> cuts = possible_cuts(sorted);
  for (auto first = cuts.begin(); first != cuts.end(); ++first) {
    if (count == 2) consider(std::array{*first});
    for (auto second = first + 1; count == 3 && second < cuts.end(); ++second)
      consider(std::array{*first, *second});
  }
  return best;
}

}  // namespace

double value_of(const Planes& planes, Shape shape) {
  double highest = 0;
  for (const Plane& plane : planes) highest = std::max(highest, value_of(plane, shape));
  return highest;
}

Planes fit_planes(std::span<const Point> points, double good_enough) {
  Planes best{fit_plane(points)};
  double best_error = worst_error(best, points);
  if (best_error <= good_enough) return best;
  if (auto exact = exact_planes(points, good_enough)) return std::move(*exact);
  std::vector<Point> sorted(points.begin(), points.end());
  // By length first: where the program changes, it changes with the sequence, seldom with the rows.
  std::sort(sorted.begin(), sorted.end(), [](const Point& a, const Point& b) {
    return a.shape.length != b.shape.length ? a.shape.length < b.shape.length : a.shape.rows < b.shape.rows;
  });
  for (std::size_t count = 2; count <= kMaxPlanes && best_error > good_enough; ++count) {
    if (sorted.size() < 2 * count) break;
    Planes planes = best_of_cuts(sorted, count);
    if (const double error = planes.empty() ? best_error : worst_error(planes, sorted); error < best_error) {
      best_error = error;
      best = std::move(planes);
    }
  }
  return best;
}

Planes fit_upper(std::span<const Point> points) {
  std::vector<Point> weighted(points.begin(), points.end());
  Plane plane = fit_plane(weighted);
  for (int round = 0; round < kRounds; ++round) {
    bool changed = false;
    for (Point& point : weighted) {
      const double weight = value_of(plane, point.shape) >= point.value ? kBelow : 1.0;
      changed = changed || weight != point.weight;
      point.weight = weight;
    }
    if (!changed) break;
    plane = fit_plane(weighted);
  }
  return {plane};
}

}  // namespace tonnage::cost::detail
