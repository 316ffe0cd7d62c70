// SPDX-License-Identifier: Apache-2.0
// The one table of metrics: a name that is not here does not exist. docs/metrics.md is tested
// against it. Triton's names stand beside our own, spelled and labelled as Triton does.
//
// Threads: constants.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace tonnage::telemetry {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };
// Upper bounds of a histogram's buckets.
enum class Buckets : std::uint8_t { kNone, kSeconds, kRows, kRatio };

struct MetricInfo {
  std::string_view name;
  MetricType type = MetricType::kCounter;
  std::string_view unit;    // "1" for counts and ratios
  std::string_view labels;  // comma-separated
  std::string_view help;
  Buckets buckets = Buckets::kNone;
};

namespace metric {
// Requests.
inline constexpr std::string_view kRequests = "tonnage_requests_total";
inline constexpr std::string_view kRequestSeconds = "tonnage_request_duration_seconds";
inline constexpr std::string_view kQueueSeconds = "tonnage_queue_duration_seconds";
inline constexpr std::string_view kExecutionSeconds = "tonnage_execution_duration_seconds";
inline constexpr std::string_view kTruncatedRows = "tonnage_truncated_rows_total";
inline constexpr std::string_view kChunkedRows = "tonnage_chunked_rows_total";
inline constexpr std::string_view kCancelledRows = "tonnage_cancelled_rows_total";
inline constexpr std::string_view kExpiredRows = "tonnage_expired_rows_total";
// Workers that were replaced.
inline constexpr std::string_view kRotations = "tonnage_rotations_total";
inline constexpr std::string_view kRotationGivenBack = "tonnage_rotation_given_back_bytes_total";
// Batches.
inline constexpr std::string_view kRows = "tonnage_rows_total";
inline constexpr std::string_view kBatches = "tonnage_batches_total";
inline constexpr std::string_view kRowsPerBatch = "tonnage_batch_rows";
inline constexpr std::string_view kRealTokens = "tonnage_tokens_real_total";
inline constexpr std::string_view kPaddedTokens = "tonnage_tokens_padded_total";
inline constexpr std::string_view kPredictedPeak = "tonnage_batch_predicted_peak_bytes";
inline constexpr std::string_view kMeasuredPeak = "tonnage_batch_measured_peak_bytes";
inline constexpr std::string_view kPeakError = "tonnage_batch_peak_error_ratio";
inline constexpr std::string_view kTimeDrift = "tonnage_time_actual_over_predicted";
inline constexpr std::string_view kOverGrants = "tonnage_over_grants_total";
inline constexpr std::string_view kPressure = "tonnage_pressure_total";
inline constexpr std::string_view kRetries = "tonnage_batch_retries_total";
inline constexpr std::string_view kPoisonRows = "tonnage_poison_rows_total";
// Lanes.
inline constexpr std::string_view kLaneRows = "tonnage_lane_rows";
inline constexpr std::string_view kLaneSeconds = "tonnage_lane_work_seconds";
// Memory.
inline constexpr std::string_view kAccountUsed = "tonnage_account_used_bytes";
inline constexpr std::string_view kAccountLimit = "tonnage_account_limit_bytes";
inline constexpr std::string_view kAccountPeak = "tonnage_account_peak_bytes";
inline constexpr std::string_view kLease = "tonnage_worker_lease_bytes";
inline constexpr std::string_view kGrant = "tonnage_worker_grant_bytes";
inline constexpr std::string_view kResident = "tonnage_worker_resident_bytes";
inline constexpr std::string_view kWorkerDevice = "tonnage_worker_device_bytes";
inline constexpr std::string_view kDevice = "tonnage_device_bytes";
inline constexpr std::string_view kWorkerMemory = "tonnage_worker_memory_bytes";
inline constexpr std::string_view kRetained = "tonnage_worker_retained_bytes";
inline constexpr std::string_view kRetention = "tonnage_worker_retention_bytes_per_row";
inline constexpr std::string_view kRetentionLeft = "tonnage_worker_retention_seconds_left";
// Workers and models.
inline constexpr std::string_view kWorkerState = "tonnage_worker_state";
inline constexpr std::string_view kWorkerDeaths = "tonnage_worker_deaths_total";
inline constexpr std::string_view kModelReady = "tonnage_model_ready";
inline constexpr std::string_view kFallbacks = "tonnage_fallback_requests_total";
inline constexpr std::string_view kObservedRefusals = "tonnage_observed_refusals_total";
inline constexpr std::string_view kLadderStep = "tonnage_ladder_step";
// The server itself.
inline constexpr std::string_view kBugs = "tonnage_bugs_total";
inline constexpr std::string_view kConnections = "tonnage_http_connections";
inline constexpr std::string_view kHttpReplies = "tonnage_http_replies_total";
inline constexpr std::string_view kBuildInfo = "tonnage_build_info";
// Triton's.
inline constexpr std::string_view kNvSuccess = "nv_inference_request_success";
inline constexpr std::string_view kNvFailure = "nv_inference_request_failure";
inline constexpr std::string_view kNvCount = "nv_inference_count";
inline constexpr std::string_view kNvExecCount = "nv_inference_exec_count";
inline constexpr std::string_view kNvRequestUs = "nv_inference_request_duration_us";
inline constexpr std::string_view kNvQueueUs = "nv_inference_queue_duration_us";
inline constexpr std::string_view kNvComputeInferUs = "nv_inference_compute_infer_duration_us";
inline constexpr std::string_view kNvPending = "nv_inference_pending_request_count";
inline constexpr std::string_view kNvLoadSeconds = "nv_model_load_duration_secs";
}  // namespace metric

// Every metric, in the order in which the text lists them.
std::span<const MetricInfo> metric_table();
const MetricInfo* find_metric(std::string_view name);
std::span<const double> bucket_bounds(Buckets buckets);
std::string_view metric_type_name(MetricType type);

}  // namespace tonnage::telemetry
