// SPDX-License-Identifier: Apache-2.0
// BatchMetrics: the series of one model that batches feed; found once, so that counting is no look-up.
// Threads: the loop.
#pragma once

#include <array>

#include "base/time.h"
#include "model/spec.h"
#include "pipeline/running_stats.h"
#include "telemetry/metrics.h"

namespace tonnage::pipeline {

// What every series of a model carries.
telemetry::Labels labels_of(const model::ModelSpec& spec);

class BatchMetrics {
 public:
  BatchMetrics(telemetry::Registry& registry, const model::ModelSpec& spec);

  // A row left its lane after `wait`.
  void left_lane(bool is_long, Duration wait);
  void executed(const BatchRecord& batch, Duration execution);

 private:
  std::array<telemetry::Histogram*, 2> queue_seconds_;  // short, long
  telemetry::Histogram& execution_seconds_;
  telemetry::Histogram& rows_;
  telemetry::Histogram& peak_error_;
  telemetry::Gauge& predicted_peak_;
  telemetry::Gauge& measured_peak_;
  telemetry::Counter& nv_queue_us_;
  telemetry::Counter& nv_compute_us_;
};

}  // namespace tonnage::pipeline
