// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/exact_planes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

namespace tonnage::cost::detail {
namespace {

constexpr std::size_t kMostPlanes = 3;
constexpr std::size_t kMostTerms = 3;
constexpr std::size_t kMostSeeds = 16;  // points that planes are drawn through: 560 triples
constexpr double kMostExceptions = 0.25;

using Members = std::uint64_t;  // a bit for each point
constexpr std::size_t kMostPoints = 64;

struct Candidate {
  Plane plane{};
  std::size_t terms = 0;
  Members on = 0;     // points that lie on it
  Members above = 0;  // points that it lies above
};

double relative(const Plane& plane, const Point& point) {
  return value_of(plane, point.shape) / std::max(point.value, 1.0) - 1;
}

// Rows alone say nothing of a plane without a constant: its terms have to be borne out by one length more
// than they are, where there are so many.
bool is_borne_out(const Candidate& candidate, std::span<const Point> points, std::size_t lengths_there_are) {
  if (static_cast<std::size_t>(std::popcount(candidate.on)) <= candidate.terms) return false;
  std::set<std::uint32_t> lengths;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if ((candidate.on >> i & 1U) != 0) lengths.insert(points[i].shape.length);
  }
  const std::size_t terms_of_length = candidate.terms - (candidate.plane[0] > 0 ? 1 : 0);
  return lengths.size() >= std::min(terms_of_length + 1, lengths_there_are);
}

class Search {
 public:
  Search(std::span<const Point> points, double tolerance) : points_(points), tolerance_(tolerance) {
    std::set<std::uint32_t> lengths;
    for (const Point& point : points) lengths.insert(point.shape.length);
    lengths_ = lengths.size();
    const std::size_t count = std::min(points.size(), kMostSeeds);
    for (std::size_t i = 0; i < count; ++i) seeds_.push_back(points[i * points.size() / count]);
  }

  // Adds the planes of just so many terms; to be called with fewer ones first.
  void find(std::size_t terms) { draw(0, terms); }
  std::span<const Candidate> found() const { return found_; }

 private:
  // All ways to choose `more` further seeds from `from` on.
  void draw(std::size_t from, std::size_t more) {
    if (more == 0) return consider();
    for (std::size_t i = from; i + more <= seeds_.size(); ++i) {
      drawn_.push_back(seeds_[i]);
      draw(i + 1, more - 1);
      drawn_.pop_back();
    }
  }

  void consider() {
    Candidate candidate{.plane = fit_plane(drawn_)};
    candidate.terms = static_cast<std::size_t>(
        std::ranges::count_if(candidate.plane, [](double coefficient) { return coefficient > 0; }));
    if (candidate.terms != drawn_.size()) return;  // fewer: it came before; more: anything goes through
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double error = relative(candidate.plane, points_[i]);
      const Members bit = Members{1} << i;
      if (std::abs(error) <= tolerance_) candidate.on |= bit;
      if (error > tolerance_) candidate.above |= bit;
    }
    const bool is_known =
        std::ranges::any_of(found_, [&](const Candidate& other) { return (candidate.on & ~other.on) == 0; });
    if (!is_known && is_borne_out(candidate, points_, lengths_)) found_.push_back(candidate);
  }

  std::span<const Point> points_;
  double tolerance_;
  std::size_t lengths_ = 0;
  std::vector<Point> seeds_;
  std::vector<Point> drawn_;
  std::vector<Candidate> found_;
};

// A choice of candidates.
struct Choice {
  Planes planes;
  Members met = 0;
  Members above = 0;  // exceptions
};

// What a plane is worth to a choice: points met that were not, less those that it newly makes exceptions.
int worth(const Candidate& candidate, const Choice& choice) {
  const Members met = candidate.on & ~choice.met & ~choice.above;
  return std::popcount(met) - std::popcount(candidate.above & ~choice.above);
}

Choice choose(std::span<const Candidate> candidates) {
  Choice choice;
  while (choice.planes.size() < kMostPlanes) {
    const auto best = std::ranges::max_element(
        candidates, {}, [&](const Candidate& candidate) { return worth(candidate, choice); });
    if (best == candidates.end() || worth(*best, choice) <= 0) break;
    choice.planes.push_back(best->plane);
    choice.above |= best->above;
    choice.met = (choice.met | best->on) & ~choice.above;
  }
  return choice;
}

}  // namespace

std::optional<Planes> exact_planes(std::span<const Point> points, double tolerance) {
  if (points.empty() || points.size() > kMostPoints) return std::nullopt;
  const Members all = ~Members{0} >> (kMostPoints - points.size());
  const auto most_exceptions = static_cast<int>(kMostExceptions * static_cast<double>(points.size()));
  Search search(points, tolerance);
  Choice choice;
  for (std::size_t terms = 1; terms <= kMostTerms && choice.met != all; ++terms) {
    search.find(terms);
    choice = choose(search.found());
  }
  const bool is_below_none = (choice.met | choice.above) == all;
  if (!is_below_none || std::popcount(choice.above) > most_exceptions) return std::nullopt;
  return choice.planes;
}

}  // namespace tonnage::cost::detail
