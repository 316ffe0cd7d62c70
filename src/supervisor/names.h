// SPDX-License-Identifier: Apache-2.0
// Stable words for states and failures, for logs, status and metrics.
#pragma once

#include <string_view>

#include "supervisor/worker.h"

namespace tonnage::supervisor {

std::string_view state_name(WorkerState state);
std::string_view failure_name(RunFailure failure);

}  // namespace tonnage::supervisor
