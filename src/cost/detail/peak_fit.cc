// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/peak_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tonnage::cost::detail {
namespace {

constexpr double kGoodFit = 0.0005;            // worst relative error that too few planes may keep
constexpr double kLeastMargin = 0.005;         // deterministic: the rounding is on top
constexpr double kLeastMarginOfValues = 0.03;  // value-dependent
constexpr double kException = 0.01;            // relative; a sample that far below its planes is one
constexpr double kMarginOfFew = 0.10;          // too few shapes to hold any back
constexpr std::size_t kFewShapes = 4;

bool is_inside(Shape small, Shape large) { return small.rows <= large.rows && small.length <= large.length; }

bool is_monotone(std::span<const PeakSample> samples) {
  for (const PeakSample& a : samples) {
    for (const PeakSample& b : samples) {
      if (is_inside(a.shape, b.shape) && a.highest > b.highest) return false;
    }
  }
  return true;
}

// Every second shape, and all that no other shape contains: an outer edge is never extrapolated to.
void split(std::span<const PeakSample> samples, std::vector<PeakSample>& to_fit,
           std::vector<PeakSample>& held_back) {
  std::vector<PeakSample> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end(), [](const PeakSample& a, const PeakSample& b) {
    return a.shape.length != b.shape.length ? a.shape.length < b.shape.length : a.shape.rows < b.shape.rows;
  });
  bool hold = false;
  for (const PeakSample& sample : sorted) {
    const bool is_outer = std::none_of(sorted.begin(), sorted.end(), [&](const PeakSample& other) {
      return !(other.shape == sample.shape) && is_inside(sample.shape, other.shape);
    });
    const bool is_inner_edge = &sample == &sorted.front();
    if (is_outer || is_inner_edge || !hold) {
      to_fit.push_back(sample);
    } else {
      held_back.push_back(sample);
    }
    hold = !hold;
  }
}

std::vector<Point> as_points(std::span<const PeakSample> samples) {
  std::vector<Point> points;
  for (const PeakSample& sample : samples)
    points.push_back({sample.shape, static_cast<double>(sample.highest), 1});
  return points;
}

}  // namespace

void PeakFit::fit(std::span<const PeakSample> samples, bool value_dependent) {
  samples_.assign(samples.begin(), samples.end());
  clamp_above_ = !value_dependent && is_monotone(samples);
  std::vector<PeakSample> to_fit;
  std::vector<PeakSample> held_back;
  split(samples, to_fit, held_back);
  if (samples.size() < kFewShapes) {
    to_fit = samples_;
    held_back.clear();
  }
  const std::vector<Point> points = as_points(to_fit);
  planes_ = value_dependent ? fit_upper(points) : fit_planes(points, kGoodFit);
  lines_.clear();
  length_part_.reset();
  if (!value_dependent && !planes_meet_all()) {
    length_part_ = LengthPart::find(as_points(samples_), kGoodFit);
    std::vector<MeasuredPeak> peaks;
    for (const PeakSample& sample : samples_) {
      const auto peak = static_cast<double>(sample.highest);
      peaks.push_back({sample.shape, peak, is_exception(sample), peak});
    }
    lines_ = exact_lines(std::move(peaks), kGoodFit);
  }
  margin_ = value_dependent ? kLeastMarginOfValues : kLeastMargin;
  if (length_part_) return;  // it was measured with every sample
  if (held_back.empty()) margin_ = std::max(margin_, kMarginOfFew);
  margin_ = std::max(margin_, needed_margin(to_fit, held_back));
  // Values: even a shape that was fitted may lie above its own fit.
  if (value_dependent) margin_ = std::max(margin_, needed_margin({}, to_fit));
}

double PeakFit::value(Shape shape) const {
  if (length_part_) return clamped(length_part_->value(shape), shape, samples_);
  double value = clamped(value_of(planes_, shape), shape, samples_);
  for (const Line& line : lines_) value = std::min(value, line.value(shape).value_or(value));
  return value;
}

bool PeakFit::is_exception(const PeakSample& sample) const {
  return value_of(planes_, sample.shape) > static_cast<double>(sample.highest) * (1 + kException);
}

bool PeakFit::planes_meet_all() const {
  return std::ranges::all_of(samples_, [this](const PeakSample& sample) {
    const auto peak = static_cast<double>(sample.highest);
    return std::abs(value_of(planes_, sample.shape) - peak) <= kGoodFit * peak;
  });
}

std::vector<Gap> PeakFit::gaps() const {
  if (length_part_) return length_part_->gaps();
  std::vector<Gap> found;
  for (const PeakSample& sample : samples_) {
    if (!is_exception(sample)) continue;
    for (const bool above : {false, true}) {
      if (const auto gap = gap_beside(sample, above)) found.push_back(*gap);
    }
  }
  return found;
}

// Up to the nearest measured length of as many rows; nothing where there is none, or where a line lies
// between.
std::optional<Gap> PeakFit::gap_beside(const PeakSample& exception, bool above) const {
  const Shape shape = exception.shape;
  std::uint32_t next = shape.length;
  for (const PeakSample& other : samples_) {
    const std::uint32_t length = other.shape.length;
    const bool is_beyond = above ? length > shape.length : length < shape.length;
    const bool is_nearer = next == shape.length || (above ? length < next : length > next);
    if (other.shape.rows == shape.rows && is_beyond && is_nearer) next = length;
  }
  const Gap gap{shape.rows, std::min(shape.length, next), std::max(shape.length, next)};
  const bool is_known = std::ranges::any_of(lines_, [&](const Line& line) {
    return line.from.rows == gap.rows && line.from.length <= gap.shorter && line.to.length >= gap.longer;
  });
  return next == shape.length || is_known ? std::nullopt : std::optional(gap);
}

double PeakFit::clamped(double value, Shape shape, std::span<const PeakSample> known) const {
  double low = 1;
  double high = std::numeric_limits<double>::infinity();
  for (const PeakSample& sample : known) {
    const auto peak = static_cast<double>(sample.highest);
    if (is_inside(sample.shape, shape)) low = std::max(low, peak);
    if (clamp_above_ && is_inside(shape, sample.shape)) high = std::min(high, peak);
  }
  return std::max(low, std::min(value, high));
}

double PeakFit::ceiling(Shape shape) const {
  double lowest = std::numeric_limits<double>::infinity();
  for (const PeakSample& sample : samples_) {
    if (clamp_above_ && is_inside(shape, sample.shape))
      lowest = std::min(lowest, static_cast<double>(sample.highest));
  }
  return lowest * (1 + kLeastMargin);
}

double PeakFit::needed_margin(std::span<const PeakSample> known, std::span<const PeakSample> unseen) const {
  double margin = 0;
  for (const PeakSample& sample : unseen) {
    const double fit = clamped(value_of(planes_, sample.shape), sample.shape, known);
    margin = std::max(margin, static_cast<double>(sample.highest) / fit - 1);
  }
  return margin;
}

}  // namespace tonnage::cost::detail
