// SPDX-License-Identifier: Apache-2.0
#include "cost/profiler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tonnage::cost {
namespace {

constexpr double kWellPredicted = 0.01;
constexpr std::uint32_t kWellPredictedInARow = 5;
constexpr double kGuessFactor = 1.25;  // grants while the fit is young
constexpr Bytes kGuessFloor = mib(1);
constexpr Bytes kFirstGuess = mib(16);
constexpr double kBudgetForShapes = 0.8;  // of profile_budget; corners may use all of it
constexpr double kBudgetForTimes = 0.5;
constexpr std::uint32_t kEdgeTries = 2;      // per length: the first miss corrects the second
constexpr std::uint32_t kValueSeeds = 2;     // runs with other values per repeated shape
constexpr std::uint32_t kSmallestSeeds = 8;  // … of the smallest, where one value more or less shows

std::uint64_t tokens_of(Shape shape) {
  return static_cast<std::uint64_t>(shape.rows) * std::max<std::uint32_t>(1, shape.length);
}

// 1, 2, 4 … in units of `unit`, and `last`.
std::vector<std::uint32_t> doubling(std::uint32_t unit, std::uint32_t last) {
  std::vector<std::uint32_t> out;
  for (std::uint64_t value = unit; value < last; value *= 2) out.push_back(static_cast<std::uint32_t>(value));
  out.push_back(last);
  return out;
}

}  // namespace

Profiler::Profiler(const CostOptions& options, const ProfileLimits& limits)
    : options_(options), limits_(limits), model_(options) {
  const auto lengths = options.max_length == 0
                           ? std::vector<std::uint32_t>{0}
                           : doubling(std::min(options.pad_multiple, options.max_length), options.max_length);
  for (const std::uint32_t length : lengths) {
    for (const std::uint32_t rows : doubling(1, options.max_rows)) {
      const bool is_end = length == lengths.front() || length == lengths.back();
      candidates_.push_back({{rows, length}, is_end && rows == 1, false, 0});
    }
  }
  std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return tokens_of(a.shape) < tokens_of(b.shape);
  });
}

std::optional<ProfileStep> Profiler::next(Duration elapsed) {
  share_of_budget_ = to_seconds(elapsed) / std::max(1e-9, to_seconds(limits_.profile_budget));
  if (again_) return std::exchange(again_, std::nullopt);
  if (share_of_budget_ < 1) {
    if (auto step = next_shape()) return step;
    if (auto step = next_in_gap()) return step;
    if (auto step = next_repeat()) return step;
    if (auto step = next_edge()) return step;
  }
  if (auto step = last_step()) return step;
  if (!measured_.empty()) (void)model_.fit();  // cannot fail: a shape was measured
  return std::nullopt;
}

std::optional<ProfileStep> Profiler::last_step() {
  if (!limits_.ends_with_largest || measured_.empty() || std::exchange(had_last_step_, true))
    return std::nullopt;
  ProfileStep step = step_for(*std::ranges::max_element(measured_, {}, tokens_of));
  step.seed = 1;
  step.is_repeat = true;
  return step;
}

std::optional<ProfileStep> Profiler::next_shape() {
  const bool is_learned = good_in_a_row_ >= kWellPredictedInARow;
  const bool is_late = share_of_budget_ > kBudgetForShapes;
  for (Candidate& candidate : candidates_) {
    if (candidate.is_done) continue;
    if (!candidate.is_corner && (is_learned || is_late || has_all_shapes())) continue;
    candidate.is_done = true;
    if (is_reachable(candidate.shape)) return step_for(candidate.shape);
  }
  return std::nullopt;
}

std::optional<ProfileStep> Profiler::next_in_gap() {
  if (repeats_planned_ || share_of_budget_ > kBudgetForShapes || halvings_ >= limits_.max_halvings)
    return std::nullopt;
  // Half a column of the table: the lengths of traffic lie on columns.
  const std::uint32_t near = std::max(1U, options_.pad_multiple / 2);
  std::optional<Shape> widest;  // its middle
  double widest_ratio = 1;
  for (const Gap& gap : model_.gaps()) {
    const double ratio = static_cast<double>(gap.longer) / std::max(1U, gap.shorter);
    const Shape middle{gap.rows, gap.shorter + (gap.longer - gap.shorter) / 2};
    if (gap.longer - gap.shorter <= near || ratio <= widest_ratio || !is_reachable(middle)) continue;
    widest = middle;
    widest_ratio = ratio;
  }
  if (!widest) return std::nullopt;
  ++halvings_;
  return step_for(*widest);
}

// The outer edge of what is reachable, known only now that warm times are.
std::optional<ProfileStep> Profiler::next_edge() {
  if (edge_to_warm_) {
    ProfileStep step = step_for(*std::exchange(edge_to_warm_, std::nullopt));
    step.seed = 1;
    step.is_repeat = true;
    return step;
  }
  if (edges_are_over_ || has_all_shapes()) return std::nullopt;
  for (Candidate& candidate : candidates_) {
    if (candidate.shape.rows != 1 || candidate.edge_tries == kEdgeTries) continue;
    const Shape edge{most_rows(candidate.shape.length), candidate.shape.length};
    if (edge.rows == 0 || was_measured(edge)) continue;
    ++candidate.edge_tries;
    return step_for(edge);
  }
  return std::nullopt;
}

std::optional<ProfileStep> Profiler::next_repeat() {
  if (!repeats_planned_) plan_repeats();
  while (next_repeat_ < repeats_.size() && is_infeasible(repeats_[next_repeat_].shape)) ++next_repeat_;
  if (next_repeat_ == repeats_.size()) return std::nullopt;
  if (next_repeat_ >= must_repeat_ && share_of_budget_ >= kBudgetForTimes) return std::nullopt;
  ProfileStep step = repeats_[next_repeat_++];
  step.grant = step_for(step.shape).grant;
  return step;
}

void Profiler::plan_repeats() {
  repeats_planned_ = true;
  std::vector<Shape> by_size = measured_;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](Shape a, Shape b) { return tokens_of(a) < tokens_of(b); });
  if (by_size.empty()) return;
  // One small, one middle, one large shape decide whether values matter; the others follow for time.
  std::vector<Shape> order{by_size.front(), by_size[by_size.size() / 2], by_size.back()};
  for (const Shape shape : by_size) order.push_back(shape);
  std::vector<Shape> taken;
  for (const Shape shape : order) {
    if (std::find(taken.begin(), taken.end(), shape) != taken.end()) continue;
    taken.push_back(shape);
    const std::uint32_t seeds = taken.size() == 1 ? kSmallestSeeds : kValueSeeds;
    for (std::uint32_t seed = 1; seed <= seeds; ++seed) repeats_.push_back({shape, Bytes(), seed, true});
    if (taken.size() == 3) must_repeat_ = repeats_.size();
  }
  must_repeat_ = must_repeat_ == 0 ? repeats_.size() : must_repeat_;
}

void Profiler::add(const ProfileStep& step, const Sample& sample) {
  if (step.is_repeat) {
    model_.add_repeat(sample);
    // Warm times decide about the edges; every repeat is too often for a fit.
    if (next_repeat_ == repeats_.size() || next_repeat_ >= must_repeat_) (void)model_.fit();
    return;
  }
  if (!measured_.empty()) {
    // Of the shapes before this one: the sample itself is not in the model yet.
    const auto predicted = static_cast<double>(model_.predict_peak(step.shape).count());
    const auto peak = static_cast<double>(sample.peak.count());
    good_in_a_row_ = std::abs(predicted - peak) <= kWellPredicted * peak ? good_in_a_row_ + 1 : 0;
  }
  if (repeats_planned_) edge_to_warm_ = step.shape;
  measured_.push_back(step.shape);
  model_.add_profile(sample);
  (void)model_.fit();  // cannot fail: a shape was measured
}

void Profiler::refused(const ProfileStep& step, Bytes needed) {
  if (needed > limits_.free || step.grant >= limits_.free) {
    infeasible_.push_back(step.shape);
    return;
  }
  again_ = step;
  again_->grant = std::min(limits_.free, std::max(step.grant * 2, scale(needed, kGuessFactor)));
}

void Profiler::lost(const ProfileStep& step) {
  if (step.grant >= limits_.free) {
    infeasible_.push_back(step.shape);
    edges_are_over_ = true;
    return;
  }
  again_ = step;
  again_->grant = limits_.free;
}

void Profiler::put_back(const ProfileStep& step) { again_ = step; }

bool Profiler::was_measured(Shape shape) const {
  return std::find(measured_.begin(), measured_.end(), shape) != measured_.end();
}

bool Profiler::is_infeasible(Shape shape) const {
  return std::any_of(infeasible_.begin(), infeasible_.end(),
                     [&](Shape small) { return small.rows <= shape.rows && small.length <= shape.length; });
}

bool Profiler::is_reachable(Shape shape) const {
  if (is_infeasible(shape)) return false;
  if (measured_.empty()) return true;
  if (model_.predict_peak(shape) > limits_.free) return false;
  return shape.rows == 1 || model_.predict_time(shape) <= limits_.max_batch_time;
}

std::uint32_t Profiler::most_rows(std::uint32_t length) const {
  std::uint32_t low = 0;  // reachable, or none
  std::uint32_t high = options_.max_rows + 1;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (is_reachable({middle, length}) ? low : high) = middle;
  }
  return low;
}

ProfileStep Profiler::step_for(Shape shape) const {
  const Bytes guess =
      measured_.empty() ? kFirstGuess : scale(model_.predict_peak(shape), kGuessFactor) + kGuessFloor;
  return {shape, std::min(limits_.free, round_up(guess, kib(64))), 0, false};
}

double Profiler::progress() const {
  if (repeats_planned_) {
    const double repeats = static_cast<double>(std::max<std::size_t>(1, repeats_.size()));
    return std::min(1.0, 0.5 + 0.5 * std::max(static_cast<double>(next_repeat_) / repeats, share_of_budget_));
  }
  const double shapes = static_cast<double>(measured_.size()) /
                        static_cast<double>(std::max<std::size_t>(1, candidates_.size()));
  return std::min(0.5, 0.5 * std::max(shapes, share_of_budget_));
}

CostModel Profiler::take_model() { return std::move(model_); }

}  // namespace tonnage::cost
