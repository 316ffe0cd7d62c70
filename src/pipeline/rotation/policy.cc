// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rotation/policy.h"

#include <algorithm>

namespace tonnage::pipeline {
namespace {

constexpr int kPausePerLoad = 10;
constexpr Duration kLongestPause = seconds(3600);

}  // namespace

std::string_view reason_name(RotationReason reason) {
  switch (reason) {
    case RotationReason::kOperator: return "operator";
    case RotationReason::kResident: return "resident";
    case RotationReason::kRetention: return "retention";
    case RotationReason::kAge: return "age";
  }
  return "unknown";
}

std::optional<RotationReason> rotation_reason(const model::RotationOptions& options,
                                              const RotationState& state) {
  if (state.is_asked) return RotationReason::kOperator;
  if (options.resident_above > Bytes() && state.resident > options.resident_above)
    return RotationReason::kResident;
  if (options.retention_within > Duration{} && state.full_in && *state.full_in <= options.retention_within)
    return RotationReason::kRetention;
  if (options.max_age > Duration{} && state.age >= options.max_age) return RotationReason::kAge;
  return std::nullopt;
}

RotationDecision decide_rotation(const model::RotationOptions& options, const RotationState& state,
                                 TimePoint now) {
  const std::optional<RotationReason> reason = rotation_reason(options, state);
  if (!reason) return {};
  if (*reason == RotationReason::kResident && state.resident_when_ready >= options.resident_above)
    return {RotationStep::kRefuse, *reason, "line_too_low"};
  if (state.another_runs || now < state.not_before) return {RotationStep::kWait, *reason};
  if (state.charge <= state.available) return {RotationStep::kStart, *reason};
  const bool may_come_back = state.charge <= state.available + state.returnable;
  const bool is_patient = state.short_since == kNever || now - state.short_since < kMemoryPatience;
  if (may_come_back && is_patient) return {RotationStep::kMakeRoom, *reason};
  const bool fits_instead = state.charge <= state.available + state.held;
  if (options.when_tight == model::WhenTight::kDropThenLoad && fits_instead)
    return {RotationStep::kDrop, *reason};
  return {RotationStep::kRefuse, *reason, "no_room"};
}

Duration rotation_pause(Duration load_time, std::uint32_t failures_in_a_row) {
  Duration pause = load_time * kPausePerLoad;
  for (std::uint32_t i = 0; i < failures_in_a_row && pause < kLongestPause; ++i)
    pause = std::max<Duration>(pause * 2, seconds(1));
  return std::min(pause, kLongestPause);
}

}  // namespace tonnage::pipeline
