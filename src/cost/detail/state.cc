// SPDX-License-Identifier: Apache-2.0
#include "cost/detail/state.h"

#include <algorithm>
#include <cmath>

namespace tonnage::cost {

using detail::Bucket;

namespace {

constexpr double kSameBytes = 1.001;      // repeats of a deterministic model agree to this
constexpr double kMaxSpread = 1.5;        // how far one miss may move shapes never seen
constexpr double kExactMargin = 0.02;     // largest margin of a shape that traffic has measured
constexpr std::uint32_t kTrusted = 1000;  // batches after which a bucket of a value-dependent model
                                          // may lie below its fit
// Single times are noisy, so the drift follows slowly. When the last few all miss to the same side the
// machine has changed (a neighbour came or went), and it follows at once.
constexpr double kSlowDrift = 1.0 / 16;
constexpr double kFastDrift = 1.0 / 4;
constexpr double kTrendWeight = 1.0 / 4;
constexpr double kChange = 0.3;       // log
constexpr double kLargestStep = 1.4;  // log: one outlier counts as a factor of four at most
constexpr std::uint32_t kResidualMemory = 64;
constexpr double kShrink = 8;
constexpr Bytes kSmallGrant = mib(8);  // up to here 64 KiB would be a share that counts

}  // namespace

Bytes as_grant(double bytes) {
  const Bytes whole(static_cast<std::uint64_t>(std::min(std::ceil(bytes), 0x1.0p62)));
  return round_up(whole, whole < kSmallGrant ? kib(4) : kib(64));
}

double Profiled::time() const {
  if (times.empty()) return 1;
  std::vector<std::int64_t> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return static_cast<double>(sorted[(sorted.size() - 1) / 2]);
}

Profiled& CostModel::State::profiled(Shape shape) {
  for (Profiled& entry : profile) {
    if (entry.peak.shape == shape) return entry;
  }
  profile.push_back({{shape, 0, 0, 0}, {}});
  return profile.back();
}

void CostModel::State::learn_determinism() {
  for (const Profiled& entry : profile) {
    if (entry.peak.runs < 2) continue;
    const double low = static_cast<double>(entry.peak.lowest);
    if (static_cast<double>(entry.peak.highest) > low * kSameBytes) {
      determinism = Determinism::kValueDependent;
      return;
    }
    if (determinism == Determinism::kUnknown) determinism = Determinism::kDeterministic;
  }
}

void CostModel::State::become_value_dependent() {
  determinism = Determinism::kValueDependent;
  std::vector<detail::PeakSample> peaks;
  for (const Profiled& entry : profile) peaks.push_back(entry.peak);
  peak_fit.fit(peaks, true);
  refresh_cells();
}

void CostModel::State::refresh_cells() {
  cell_peaks.resize(buckets.size());
  cell_times.resize(buckets.size());
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    for (std::uint32_t rows = 1; rows <= table.max_rows(); ++rows) {
      const Shape shape{rows, table.length_of(column)};
      cell_peaks[index_of(rows, column)] = peak_fit.value(shape);
      cell_times[index_of(rows, column)] = time_fit.nanoseconds(shape);
    }
  }
}

double CostModel::State::fitted_peak(Shape shape) const {
  const bool is_cell = fitted && is_inside(shape) && nominal(shape) == shape;
  return is_cell ? cell_peaks[index_of(shape.rows, table.column_of(shape.length))] : peak_fit.value(shape);
}

double CostModel::State::fitted_time(Shape shape) const {
  const bool is_cell = fitted && is_inside(shape) && nominal(shape) == shape;
  return is_cell ? cell_times[index_of(shape.rows, table.column_of(shape.length))]
                 : time_fit.nanoseconds(shape);
}

double CostModel::State::peak_of(Shape shape) const {
  const double fit = fitted_peak(shape);
  if (!is_inside(shape)) return fit * spread;
  const Bucket& bucket = bucket_of(shape);
  if (bucket.bound == 0) return fit * spread;
  const Shape padded = nominal(shape);
  if (padded == shape) return bucket.bound;
  // Inside a bucket the fit's form holds, moved by what the bucket taught.
  const double moved = fit * (bucket.bound / fitted_peak(padded));
  return std::min(std::max(moved, fit), std::max(bucket.bound, fit));
}

double CostModel::State::grant_of(Shape shape) const {
  double margin = peak_fit.margin();
  if (is_deterministic() && is_inside(shape) && nominal(shape) == shape && bucket_of(shape).exact) {
    margin = std::min(margin, kExactMargin);
  }
  const double grant = peak_of(shape) * (1 + margin);
  const bool is_taught = spread > 1 || (is_inside(shape) && bucket_of(shape).bound != 0);
  return is_taught ? grant : std::min(grant, peak_fit.ceiling(shape));
}

double CostModel::State::time_of(Shape shape) const {
  const double smooth = fitted_time(shape);
  if (!is_inside(shape)) return smooth;
  const Bucket& bucket = bucket_of(shape);
  const double n = bucket.times;
  return smooth * std::exp(bucket.log_time * n / (n + kShrink));
}

void CostModel::State::widen_spread(Shape shape, double peak) {
  if (bucket_of(shape).exact || peak <= grant_of(shape)) return;
  spread = std::clamp(peak / fitted_peak(shape), spread, kMaxSpread);
}

Learned CostModel::State::learn_peak(Shape shape, double peak) {
  Bucket& bucket = bucket_of(shape);
  const Shape padded = nominal(shape);
  const bool is_padded = padded == shape;
  const double fit = fitted_peak(padded);
  const double before = bucket.bound == 0 ? fit * spread : bucket.bound;
  const double at_padded = is_padded ? peak : peak * fit / fitted_peak(shape);
  const double spread_before = spread;
  widen_spread(shape, peak);
  bucket.refused = false;

  const auto recent_before = static_cast<double>(bucket.recent_max());
  const bool may_fall = bucket.count(static_cast<std::uint64_t>(at_padded));
  bool changed_class = false;
  if (is_deterministic() && is_padded) {
    if (bucket.exact && (peak > recent_before * kSameBytes || peak * kSameBytes < recent_before)) {
      become_value_dependent();
      changed_class = true;
    } else if (bucket.bound == 0) {
      bucket.bound = std::max(1.0, peak);  // a measured shape is exact
    }
    bucket.exact = true;
  }
  if (at_padded > before) {
    bucket.bound = at_padded;
  } else if (may_fall && (bucket.bound != 0 || bucket.batches >= kTrusted)) {
    const bool trusted = bucket.batches >= kTrusted || (is_deterministic() && bucket.exact);
    const auto recent = static_cast<double>(bucket.recent_max());
    bucket.bound = std::max(trusted ? recent : std::max(recent, fit), before * detail::kFallFactor);
  }
  if (changed_class || spread > spread_before) return Learned::kAllGrants;
  return bucket.bound > before ? Learned::kLargerGrant : Learned::kLittle;
}

Learned CostModel::State::learn_refusal(Shape shape, double needed) {
  Bucket& bucket = bucket_of(shape);
  const Shape padded = nominal(shape);
  const double before = peak_of(padded);
  const double spread_before = spread;
  widen_spread(shape, needed);
  double bound = padded == shape ? needed : needed * fitted_peak(padded) / fitted_peak(shape);
  // `needed` is only where it stopped: the second refusal in a row doubles instead of creeping up.
  if (bucket.refused) bound = std::max(bound, 2 * before);
  bucket.refused = true;
  bucket.bound = std::max({bound, before, 1.0});
  return spread > spread_before ? Learned::kAllGrants : Learned::kLargerGrant;
}

void CostModel::State::learn_time(Shape shape, Duration time) {
  const auto actual = static_cast<double>(std::max<std::int64_t>(1, time.count()));
  const double smooth = std::log(actual / fitted_time(shape));
  const double step = std::clamp(std::log(actual / time_of(shape)) - log_drift, -kLargestStep, kLargestStep);
  // By the trend before it: one outlier alone is no change.
  log_drift += (std::abs(trend) > kChange ? kFastDrift : kSlowDrift) * step;
  trend += kTrendWeight * (step - trend);
  Bucket& bucket = bucket_of(shape);
  bucket.times = std::min(bucket.times + 1, kResidualMemory);
  const double residual = smooth - log_drift - bucket.log_time;
  bucket.log_time += std::clamp(residual, -kLargestStep, kLargestStep) / bucket.times;
}

void CostModel::State::update_table(Learned learned, Shape shape) {
  if (learned == Learned::kAllGrants) rebuild_table();
  if (learned == Learned::kLargerGrant) raise_table(shape);
}

void CostModel::State::raise_table(Shape from) {
  const std::uint32_t first_column = table.column_of(from.length);
  const Shape padded = nominal(from);
  const Bytes grant = as_grant(grant_of(padded));
  for (std::uint32_t column = first_column; column < table.columns(); ++column) {
    for (std::uint32_t rows = from.rows; rows <= table.max_rows(); ++rows) {
      if (table.grant(rows, column) < grant) table.set(rows, column, grant, table.time(rows, column));
    }
  }
}

void CostModel::State::rebuild_table() {
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    const std::uint32_t length = table.length_of(column);
    for (std::uint32_t rows = 1; rows <= table.max_rows(); ++rows) {
      const Shape shape{rows, length};
      Bytes grant = as_grant(grant_of(shape));
      Duration time(static_cast<std::int64_t>(std::min(time_of(shape), 0x1.0p62)));
      if (rows > 1) {
        grant = std::max(grant, table.grant(rows - 1, column));
        time = std::max(time, table.time(rows - 1, column));
      }
      if (column > 0) {
        grant = std::max(grant, table.grant(rows, column - 1));
        time = std::max(time, table.time(rows, column - 1));
      }
      table.set(rows, column, grant, time);
    }
  }
}

}  // namespace tonnage::cost
