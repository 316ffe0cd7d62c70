// SPDX-License-Identifier: Apache-2.0
// RunningStats: what a model has done so far, for status and metrics. Threads: the loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "model/spec.h"

namespace tonnage::pipeline {

struct BatchRecord {
  std::uint32_t rows = 0;
  std::uint64_t real_tokens = 0;    // sum of the rows' own lengths
  std::uint64_t padded_tokens = 0;  // rows × padded length
  Bytes predicted;                  // the fit, without margin
  Bytes grant;
  Bytes peak;
};

// What a model that only observes has seen since it does (enforce = "observe").
struct Observed {
  std::uint64_t refusals = 0;  // requests that prediction would have refused
  std::uint64_t answered = 0;  // of those: prediction was wrong
  std::uint64_t batches = 0;
};

struct Safety {
  bool is_safe = false;
  std::string why;
};
// May the model's predictions refuse requests again?
Safety safe_to_enforce(model::Enforce now, const Observed& seen);

struct RunningStats {
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  std::uint64_t rows = 0;
  std::uint64_t batches = 0;
  std::uint64_t real_tokens = 0;
  std::uint64_t padded_tokens = 0;
  std::uint64_t over_grants = 0;
  std::uint64_t pressures = 0;
  std::uint64_t retried_rows = 0;
  std::uint64_t poison_rows = 0;
  std::uint64_t fallbacks = 0;  // requests that its fallback took
  std::uint32_t longest = 0;    // longest row seen, padded
  double peak_error_worst = 0;  // |predicted − peak| ÷ peak
  Bytes peak_highest;

  void add(const BatchRecord& batch);
  // Over the last kKept batches; zero without any.
  double peak_error_median() const;

  static constexpr std::size_t kKept = 4096;

 private:
  std::vector<float> errors_;
  std::size_t next_ = 0;
};

}  // namespace tonnage::pipeline
