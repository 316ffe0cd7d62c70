// SPDX-License-Identifier: Apache-2.0
// Whether a worker is replaced now. Pure: the same state gives the same decision.
//
// Promises:
//  1. Never begins while another rotation of the server runs, or before `not_before`.
//  2. Begins beside the old worker only where the standby's whole charge is free now. Memory that comes
//     back by itself is waited for, at most kMemoryPatience.
//  3. What does not fit is dropped and loaded, or refused, as the model says. Nothing is dropped that would
//     not fit afterwards; a line that a fresh worker would cross as well is refused, because no rotation
//     can help.
// Threads: any, no state. Cannot fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/time.h"
#include "model/spec.h"

namespace tonnage::pipeline {

inline constexpr Duration kMemoryPatience = seconds(10);

// In the order in which they count, where several hold.
enum class RotationReason : std::uint8_t { kOperator, kResident, kRetention, kAge };
std::string_view reason_name(RotationReason reason);

struct RotationState {
  bool is_asked = false;  // by an operator
  Bytes resident;         // RssAnon of the worker
  Bytes resident_when_ready;
  Duration age{};                   // since it was ready
  std::optional<Duration> full_in;  // until what the model keeps reaches its limit, as projected
  bool another_runs = false;
  TimePoint not_before{};          // the pause after the last rotation of the server
  Bytes charge;                    // what a standby takes before it starts
  Bytes available;                 // of the ledger
  Bytes held;                      // by the old worker: comes back when it ends
  Bytes returnable;                // comes back by itself: bodies, envelopes, leases of idle workers
  TimePoint short_since = kNever;  // since when `charge` was not available
};

enum class RotationStep : std::uint8_t { kKeep, kWait, kMakeRoom, kStart, kDrop, kRefuse };

struct RotationDecision {
  RotationStep step = RotationStep::kKeep;
  RotationReason reason = RotationReason::kOperator;  // of all but kKeep
  std::string_view why{};                             // of kRefuse: no_room, line_too_low
};

// Why it should be replaced, if at all; from the first five fields alone.
std::optional<RotationReason> rotation_reason(const model::RotationOptions& options,
                                              const RotationState& state);

RotationDecision decide_rotation(const model::RotationOptions& options, const RotationState& state,
                                 TimePoint now);

// From the end of one rotation to the next of the server: ten times what loading took, doubled with
// each failure in a row, at most an hour.
Duration rotation_pause(Duration load_time, std::uint32_t failures_in_a_row);

}  // namespace tonnage::pipeline
