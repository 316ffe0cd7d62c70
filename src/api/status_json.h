// SPDX-License-Identifier: Apache-2.0
// The server's state for people and programs: one JSON document, and the gauges of /metrics.
#pragma once

#include <string>

#include "memory/budget.h"
#include "pipeline/pipeline.h"
#include "telemetry/metrics.h"

namespace tonnage::api {

std::string status_json(const memory::Account& root, const pipeline::Pipeline& pipeline, bool ready);
// Brings the gauges up to date before they are written.
void publish(const memory::Account& root, const pipeline::Pipeline& pipeline, telemetry::Registry& metrics);

}  // namespace tonnage::api
