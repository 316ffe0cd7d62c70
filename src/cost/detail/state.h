// SPDX-License-Identifier: Apache-2.0
// The inside of CostModel, shared by cost_model.cc and profile_text.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/cost_model.h"
#include "cost/detail/bucket.h"
#include "cost/detail/peak_fit.h"
#include "cost/detail/time_fit.h"

namespace tonnage::cost {

// A profiled shape: the range of its peaks over the runs, and its times.
struct Profiled {
  detail::PeakSample peak;
  std::vector<std::int64_t> times;  // nanoseconds, in the order of the runs

  double time() const;  // median; of two the smaller, because first runs pay for page faults
};

// Rounded up as every grant is: to 4 KiB, from 8 MiB on to 64 KiB.
Bytes as_grant(double bytes);

// How much of the table has to follow.
enum class Learned : std::uint8_t { kLittle, kLargerGrant, kAllGrants };

struct CostModel::State {
  explicit State(const CostOptions& given)
      : options(given), table(given.max_rows, given.pad_multiple, given.max_length) {
    buckets.resize(static_cast<std::size_t>(table.max_rows()) * table.columns());
  }

  CostOptions options;
  std::vector<Profiled> profile;
  Determinism determinism = Determinism::kUnknown;
  bool fitted = false;
  detail::PeakFit peak_fit;
  detail::TimeFit time_fit;
  std::vector<detail::Bucket> buckets;
  // Of each cell, by index_of(): the fits walk over all samples, which is too dear for every batch.
  std::vector<double> cell_peaks;
  std::vector<double> cell_times;
  double spread = 1;  // what a miss says of shapes never seen; bounded, falls back to one
  double log_drift = 0;
  double trend = 0;  // smoothed log(actual ÷ predicted time), with drift
  std::uint64_t batches = 0;
  CostTable table;

  Profiled& profiled(Shape shape);
  void learn_determinism();
  void become_value_dependent();
  bool is_deterministic() const { return determinism != Determinism::kValueDependent; }

  bool is_inside(Shape shape) const { return shape.rows >= 1 && shape.rows <= table.max_rows(); }
  std::size_t index_of(std::uint32_t rows, std::uint32_t column) const {
    return static_cast<std::size_t>(column) * table.max_rows() + (rows - 1);
  }
  detail::Bucket& bucket_of(Shape shape) {
    return buckets[index_of(shape.rows, table.column_of(shape.length))];
  }
  const detail::Bucket& bucket_of(Shape shape) const {
    return buckets[index_of(shape.rows, table.column_of(shape.length))];
  }
  // The shape that the table knows this one as.
  Shape nominal(Shape shape) const { return {shape.rows, table.length_of(table.column_of(shape.length))}; }

  void refresh_cells();  // after a fit
  double fitted_peak(Shape shape) const;
  double fitted_time(Shape shape) const;
  double peak_of(Shape shape) const;
  double grant_of(Shape shape) const;  // with margin, not rounded
  double time_of(Shape shape) const;   // without drift

  Learned learn_peak(Shape shape, double peak);
  Learned learn_refusal(Shape shape, double needed);
  void widen_spread(Shape shape, double peak);
  void learn_time(Shape shape, Duration time);
  // Writes the grants of `from` and of all larger shapes; the table stays monotone.
  void update_table(Learned learned, Shape shape);
  void raise_table(Shape from);
  void rebuild_table();
};

}  // namespace tonnage::cost
