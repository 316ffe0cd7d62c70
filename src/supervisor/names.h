// SPDX-License-Identifier: Apache-2.0
// Stable words for states and failures, for logs, status and metrics.
#pragma once

#include <array>
#include <string_view>

#include "supervisor/worker.h"

namespace tonnage::supervisor {

inline constexpr std::array kWorkerStates = {
    WorkerState::kWaitingToStart, WorkerState::kStarting, WorkerState::kLoading, WorkerState::kReady,
    WorkerState::kBusy,           WorkerState::kBroken,   WorkerState::kStopped};

std::string_view state_name(WorkerState state);
std::string_view failure_name(RunFailure failure);

}  // namespace tonnage::supervisor
