// SPDX-License-Identifier: Apache-2.0
#include "cost/cost_model.h"

#include <algorithm>
#include <cmath>

#include "cost/detail/state.h"

namespace tonnage::cost {

using detail::Bucket;

std::string_view determinism_name(Determinism determinism) {
  switch (determinism) {
    case Determinism::kDeterministic: return "deterministic";
    case Determinism::kValueDependent: return "value_dependent";
    case Determinism::kUnknown: break;
  }
  return "unknown";
}

CostModel::CostModel(const CostOptions& options) : state_(std::make_unique<State>(options)) {}
CostModel::~CostModel() = default;
CostModel::CostModel(CostModel&&) noexcept = default;
CostModel& CostModel::operator=(CostModel&&) noexcept = default;

void CostModel::add_profile(const Sample& sample) {
  Profiled& entry = state_->profiled(sample.shape);
  const std::uint64_t peak = sample.peak.count();
  entry.peak.lowest = entry.peak.runs == 0 ? peak : std::min(entry.peak.lowest, peak);
  entry.peak.highest = std::max(entry.peak.highest, peak);
  ++entry.peak.runs;
  entry.times.push_back(std::max<std::int64_t>(1, sample.time.count()));
}

void CostModel::add_repeat(const Sample& sample) { add_profile(sample); }

Status CostModel::fit() {
  State& s = *state_;
  if (s.profile.empty()) return internal("no_profile", "a cost model needs at least one measured shape");
  s.learn_determinism();
  std::vector<detail::PeakSample> peaks;
  std::vector<detail::Point> times;
  for (const Profiled& entry : s.profile) {
    peaks.push_back(entry.peak);
    times.push_back({entry.peak.shape, entry.time(), 1});
  }
  s.peak_fit.fit(peaks, !s.is_deterministic());
  s.time_fit.fit(times);
  s.refresh_cells();
  s.fitted = true;
  // What the smooth fit misses at the profiled shapes is where the residuals start.
  for (const Profiled& entry : s.profile) {
    const Shape shape = entry.peak.shape;
    if (!s.is_inside(shape)) continue;
    Bucket& bucket = s.bucket_of(shape);
    if (bucket.times != 0) continue;
    bucket.log_time = std::log(entry.time() / s.fitted_time(shape));
    bucket.times = static_cast<std::uint32_t>(entry.times.size());
  }
  s.rebuild_table();
  return Status::ok();
}

void CostModel::observe(const Sample& sample) {
  State& s = *state_;
  if (!s.fitted || !s.is_inside(sample.shape)) return;
  ++s.batches;
  if (s.batches % detail::kFallEvery == 0) s.spread = std::max(1.0, s.spread * detail::kFallFactor);
  const Learned learned = s.learn_peak(sample.shape, static_cast<double>(sample.peak.count()));
  s.learn_time(sample.shape, sample.time);
  // The table follows at once where a grant is too small, and every few hundred batches otherwise.
  const std::uint64_t refresh_every = std::max<std::uint64_t>(256, s.buckets.size() / 8);
  s.update_table(s.batches % refresh_every == 0 ? Learned::kAllGrants : learned, sample.shape);
}

void CostModel::observe_over_grant(Shape shape, Bytes needed) {
  State& s = *state_;
  if (!s.fitted || !s.is_inside(shape)) return;
  s.update_table(s.learn_refusal(shape, static_cast<double>(needed.count())), shape);
}

Bytes CostModel::predict_peak(Shape shape) const {
  return Bytes(static_cast<std::uint64_t>(std::min(std::ceil(state_->peak_of(shape)), 0x1.0p63)));
}

Bytes CostModel::grant(Shape shape) const { return as_grant(state_->grant_of(shape)); }

Duration CostModel::predict_time(Shape shape) const {
  return Duration(static_cast<std::int64_t>(std::min(state_->time_of(shape) * drift(), 0x1.0p62)));
}

std::vector<Gap> CostModel::gaps() const { return state_->peak_fit.gaps(); }

Determinism CostModel::determinism() const { return state_->determinism; }
double CostModel::margin() const { return state_->peak_fit.margin(); }
double CostModel::drift() const { return std::exp(state_->log_drift); }
const CostTable& CostModel::table() const { return state_->table; }

}  // namespace tonnage::cost
