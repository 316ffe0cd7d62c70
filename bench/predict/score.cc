// SPDX-License-Identifier: Apache-2.0
#include "bench/predict/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/json_text.h"

namespace tonnage::bench {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

double resident_error(Bytes predicted, Bytes measured) {
  const Bytes off = std::max(predicted, measured) - std::min(predicted, measured);
  return static_cast<double>(off.count()) / static_cast<double>(std::max(measured, mib(160)).count());
}

std::string Score::keys() const {
  std::string out = fmt::format(
      "\"median\":{:.6g},\"p99\":{:.6g},\"over_grant\":{},\"batches\":{},\"grant_over_measured_p99\":{:.4f},"
      "\"shapes\":{},\"profiled\":{},\"profile_seconds\":{:.2f},\"class\":{},\"seconds\":{:.1f}",
      quantile(errors, 0.5), quantile(errors, 0.99), over_grant, batches, quantile(ratios, 0.99),
      errors.size(), profiled, profile_seconds, json_string(determinism), seconds);
  if (!ratios_of_shapes.empty())
    out += fmt::format(",\"grant_over_p99_of_shape\":{:.4f}", quantile(ratios_of_shapes, 0.99));
  if (worst_resident > 0) out += fmt::format(",\"resident_error\":{:.4f}", worst_resident);
  if (!budget_use.empty()) {
    out += fmt::format(
        ",\"budget_use\":{:.4f},\"budget_use_highest\":{:.4f},\"room_use\":{:.4f},\"cut_batches\":{}",
        mean(budget_use), *std::max_element(budget_use.begin(), budget_use.end()), mean(room_use),
        budget_use.size());
  }
  return out;
}

}  // namespace tonnage::bench
