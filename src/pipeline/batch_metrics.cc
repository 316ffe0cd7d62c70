// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "telemetry/metric_names.h"

namespace tonnage::pipeline {
namespace {

namespace metric = telemetry::metric;

telemetry::Labels with_class(telemetry::Labels labels, const char* name) {
  labels.emplace_back("class", name);
  return labels;
}

std::uint64_t whole_us(Duration d) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, d.count() / 1000));
}

}  // namespace

telemetry::Labels labels_of(const model::ModelSpec& spec) {
  return {{"model", spec.name}, {"version", spec.version}};
}

BatchMetrics::BatchMetrics(telemetry::Registry& registry, const model::ModelSpec& spec)
    : queue_seconds_{&registry.histogram(metric::kQueueSeconds, with_class(labels_of(spec), "short")),
                     &registry.histogram(metric::kQueueSeconds, with_class(labels_of(spec), "long"))},
      execution_seconds_(registry.histogram(metric::kExecutionSeconds, labels_of(spec))),
      rows_(registry.histogram(metric::kRowsPerBatch, labels_of(spec))),
      peak_error_(registry.histogram(metric::kPeakError, labels_of(spec))),
      predicted_peak_(registry.gauge(metric::kPredictedPeak, labels_of(spec))),
      measured_peak_(registry.gauge(metric::kMeasuredPeak, labels_of(spec))),
      nv_queue_us_(registry.counter(metric::kNvQueueUs, labels_of(spec))),
      nv_compute_us_(registry.counter(metric::kNvComputeInferUs, labels_of(spec))) {}

void BatchMetrics::left_lane(bool is_long, Duration wait) {
  queue_seconds_[is_long ? 1 : 0]->observe(to_seconds(wait));
  nv_queue_us_.add(whole_us(wait));
}

void BatchMetrics::executed(const BatchRecord& batch, Duration execution) {
  execution_seconds_.observe(to_seconds(execution));
  nv_compute_us_.add(whole_us(execution));
  rows_.observe(batch.rows);
  const auto predicted = static_cast<double>(batch.predicted.count());
  const auto peak = static_cast<double>(batch.peak.count());
  predicted_peak_.set(predicted);
  measured_peak_.set(peak);
  if (peak > 0) peak_error_.observe(std::abs(predicted - peak) / peak);
}

}  // namespace tonnage::pipeline
