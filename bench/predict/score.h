// SPDX-License-Identifier: Apache-2.0
// What the predict bench found about one model, and its keys in the result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tonnage::bench {

// The value that a share of q of all is not above; 0 of none.
double quantile(std::vector<double> values, double q);

// |predicted − measured| ÷ max(measured, 160 MiB): at most 0.05 is "within 5 % or 8 MiB".
double resident_error(Bytes predicted, Bytes measured);

struct Score {
  std::vector<double> errors;  // per unseen shape: |fit − peak| ÷ peak
  std::vector<double> ratios;  // … grant ÷ peak
  // Only of models whose values matter: grant ÷ 99th percentile of the peaks, one per shape.
  std::vector<double> ratios_of_shapes;
  std::uint64_t batches = 0;
  std::uint64_t over_grant = 0;
  std::size_t profiled = 0;
  double profile_seconds = 0;
  std::string_view determinism;
  double worst_resident = 0;
  std::vector<double> budget_use;  // per batch that memory cut; nothing where none was
  std::vector<double> room_use;    // the same without base and weights
  double seconds = 0;

  std::string keys() const;  // "\"median\":…,…"
};

}  // namespace tonnage::bench
