// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/nnls.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace tonnage::cost::detail {
namespace {

constexpr double kEquallyWell = 1e-9;  // weighted mean squared relative error
constexpr std::size_t kSets = (1U << kFeatures) - 1;
using Matrix = std::array<std::array<long double, kFeatures>, kFeatures>;
using Vector = std::array<long double, kFeatures>;

// AᵀA and Aᵀ1 of the rows features ÷ value, columns scaled to length one: B·P² is a million times B.
struct Normal {
  Matrix matrix{};
  Vector right{};
  Vector scale{};
  long double weight_sum = 0;
};

Normal normal_equations(std::span<const Point> points) {
  Normal n;
  for (const Point& point : points) {
    const Plane x = features_of(point.shape);
    const long double over = 1.0L / std::max(point.value, 1.0);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      for (std::size_t j = 0; j < kFeatures; ++j) n.matrix[i][j] += point.weight * x[i] * x[j] * over * over;
      n.right[i] += point.weight * x[i] * over;
    }
    n.weight_sum += point.weight;
  }
  for (std::size_t i = 0; i < kFeatures; ++i)
    n.scale[i] = n.matrix[i][i] > 0 ? 1 / std::sqrt(n.matrix[i][i]) : 0;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t j = 0; j < kFeatures; ++j) n.matrix[i][j] *= n.scale[i] * n.scale[j];
    n.right[i] *= n.scale[i];
  }
  return n;
}

// Gaussian elimination with pivoting on the features in `set`; nothing when they are dependent.
std::optional<Vector> solve(const Normal& n, unsigned set) {
  std::array<std::size_t, kFeatures> index{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if ((set >> i & 1U) != 0) index[size++] = i;
  }
  std::array<std::array<long double, kFeatures + 1>, kFeatures> rows{};
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) rows[i][j] = n.matrix[index[i]][index[j]];
    rows[i][size] = n.right[index[i]];
  }
  for (std::size_t column = 0; column < size; ++column) {
    std::size_t pivot = column;
    for (std::size_t i = column + 1; i < size; ++i) {
      if (std::abs(rows[i][column]) > std::abs(rows[pivot][column])) pivot = i;
    }
    if (std::abs(rows[pivot][column]) < 1e-12L) return std::nullopt;
    std::swap(rows[pivot], rows[column]);
    for (std::size_t i = 0; i < size; ++i) {
      if (i == column) continue;
      const long double factor = rows[i][column] / rows[column][column];
      for (std::size_t j = column; j <= size; ++j) rows[i][j] -= factor * rows[column][j];
    }
  }
  Vector out{};
  for (std::size_t i = 0; i < size; ++i) out[index[i]] = rows[i][size] / rows[i][i];
  return out;
}

Plane unscaled(const Normal& n, const Vector& solution) {
  Plane plane{};
  for (std::size_t i = 0; i < kFeatures; ++i) plane[i] = static_cast<double>(solution[i] * n.scale[i]);
  return plane;
}

double mean_square(const Plane& plane, std::span<const Point> points, double weight_sum) {
  double sum = 0;
  for (const Point& point : points) {
    const double error = value_of(plane, point.shape) / std::max(point.value, 1.0) - 1;
    sum += point.weight * error * error;
  }
  return sum / weight_sum;
}

// Small ones first; of equal size those with B·P first: where all points have one length, B, B·P and B·P²
// fit equally well, and memory goes with tokens.
std::vector<unsigned> sets_in_order() {
  constexpr unsigned kTokens = 1U << 2U;
  std::vector<unsigned> sets(kSets);
  std::iota(sets.begin(), sets.end(), 1U);
  std::ranges::stable_sort(
      sets, {}, [](unsigned set) { return 2 * std::popcount(set) + ((set & kTokens) == 0 ? 1 : 0); });
  return sets;
}

}  // namespace

Plane features_of(Shape shape) {
  const double rows = shape.rows;
  const double length = shape.length;
  return {1, rows, rows * length, rows * length * length};
}

double value_of(const Plane& plane, Shape shape) {
  const Plane x = features_of(shape);
  double sum = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) sum += plane[i] * x[i];
  return sum;
}

Plane fit_plane(std::span<const Point> points) {
  Plane best{};
  if (points.empty()) return best;
  const Normal n = normal_equations(points);
  double best_error = std::numeric_limits<double>::infinity();
  static const std::vector<unsigned> sets = sets_in_order();
  for (const unsigned set : sets) {
    const auto solution = solve(n, set);
    if (!solution || std::any_of(solution->begin(), solution->end(), [](long double c) { return c < 0; }))
      continue;
    const Plane plane = unscaled(n, *solution);
    const double error = mean_square(plane, points, static_cast<double>(n.weight_sum));
    if (error < best_error - kEquallyWell) {
      best_error = error;
      best = plane;
    }
  }
  return best;
}

}  // namespace tonnage::cost::detail
