// SPDX-License-Identifier: Apache-2.0
#include "supervisor/names.h"

namespace tonnage::supervisor {

std::string_view state_name(WorkerState state) {
  switch (state) {
    case WorkerState::kWaitingToStart: return "waiting_to_start";
    case WorkerState::kStarting: return "starting";
    case WorkerState::kLoading: return "loading";
    case WorkerState::kReady: return "ready";
    case WorkerState::kBusy: return "busy";
    case WorkerState::kBroken: return "broken";
    case WorkerState::kStopped: return "stopped";
  }
  return "unknown";
}

std::string_view failure_name(RunFailure failure) {
  switch (failure) {
    case RunFailure::kOverGrant: return "over_grant";
    case RunFailure::kPressure: return "pressure";
    case RunFailure::kModelError: return "model_error";
    case RunFailure::kBadOutput: return "bad_output";
    case RunFailure::kStickyDevice: return "sticky_device";
    case RunFailure::kDied: return "died";
    case RunFailure::kWatchdog: return "watchdog";
  }
  return "unknown";
}

}  // namespace tonnage::supervisor
