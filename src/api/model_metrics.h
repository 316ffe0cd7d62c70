// SPDX-License-Identifier: Apache-2.0
// Metrics of requests and models. Counting a request costs no look-up: the series of a model are found
// once and kept; everything that lives elsewhere is read when /metrics is written.
// Threads: the loop.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "memory/budget.h"
#include "pipeline/pipeline.h"
#include "telemetry/metrics.h"

namespace tonnage::api {

class RequestMetrics {
 public:
  explicit RequestMetrics(telemetry::Registry& registry) : registry_(registry) {}

  // `spec` is null where the model is unknown.
  void count(const model::ModelSpec* spec, const Status& status, Duration took, std::uint32_t rows);
  // A model that is gone: its series end here.
  void forget(const std::string& model);
  void truncated(const model::ModelSpec& spec, std::uint32_t rows);
  void chunked(const model::ModelSpec& spec, std::uint32_t rows);

 private:
  struct Series {
    telemetry::Counter* answered = nullptr;
    telemetry::Histogram* seconds = nullptr;
    telemetry::Counter* nv_success = nullptr;
    telemetry::Counter* nv_failure = nullptr;
    telemetry::Counter* nv_count = nullptr;
    telemetry::Counter* nv_request_us = nullptr;
  };
  Series& series_of(const model::ModelSpec& spec);

  telemetry::Registry& registry_;
  std::map<std::string, Series, std::less<>> series_;
};

// Brings the gauges, and the counters of batches, up to date before they are written.
void publish(const memory::Account& root, const pipeline::Pipeline& pipeline, telemetry::Registry& metrics);

}  // namespace tonnage::api
