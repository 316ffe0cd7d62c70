// SPDX-License-Identifier: Apache-2.0
#include "telemetry/metric_names.h"

namespace tonnage::telemetry {
namespace {

using enum MetricType;
using namespace metric;

constexpr std::string_view kModel = "model,version";
constexpr std::string_view kClass = "model,version,class";
constexpr std::string_view kWorker = "model,version,worker";

constexpr auto kTable = std::to_array<MetricInfo>({
    {kRequests, kCounter, "1", "model,version,outcome,reason",
     "Requests by outcome (answered, refused, failed) and reason."},
    {kRequestSeconds, kHistogram, "seconds", kModel,
     "From the whole body read to the reply, answered requests.", Buckets::kSeconds},
    {kQueueSeconds, kHistogram, "seconds", kClass, "From entering the lane to leaving it, per row.",
     Buckets::kSeconds},
    {kExecutionSeconds, kHistogram, "seconds", kModel, "One batch in the worker, as the front saw it.",
     Buckets::kSeconds},
    {kTruncatedRows, kCounter, "1", kModel, "Rows whose text was cut at the model's length."},
    {kChunkedRows, kCounter, "1", kModel, "Texts that were cut into chunks and answered by all of them."},
    {kCancelledRows, kCounter, "1", kModel, "Rows dropped because their client left."},
    {kExpiredRows, kCounter, "1", kModel, "Rows answered because their deadline passed."},
    {kRows, kCounter, "1", kModel, "Rows executed and answered."},
    {kBatches, kCounter, "1", kModel, "Batches executed."},
    {kRowsPerBatch, kHistogram, "1", kModel, "Rows in one batch.", Buckets::kRows},
    {kRealTokens, kCounter, "1", kModel, "Positions that belong to rows; for models without a length, rows."},
    {kPaddedTokens, kCounter, "1", kModel,
     "Positions executed, padding included. Waste = 1 - real / padded."},
    {kPredictedPeak, kGauge, "bytes", kModel, "Fitted tensor peak of the last batch, without margin."},
    {kMeasuredPeak, kGauge, "bytes", kModel, "Tensor peak that the worker measured for the last batch."},
    {kPeakError, kHistogram, "1", kModel, "|predicted - measured| / measured, per batch.", Buckets::kRatio},
    {kTimeDrift, kGauge, "1", kModel, "Smoothed actual over predicted batch time."},
    {kOverGrants, kCounter, "1", kModel, "Batches that the worker's allocator refused above their grant."},
    {kPressure, kCounter, "1", kModel, "Batches to which the kernel refused memory inside their grant."},
    {kRetries, kCounter, "1", kModel, "Rows run again after their batch failed."},
    {kPoisonRows, kCounter, "1", kModel, "Rows found guilty of a worker's death."},
    {kLaneRows, kGauge, "1", kClass, "Rows waiting."},
    {kLaneSeconds, kGauge, "seconds", kClass, "Predicted seconds of the rows waiting."},
    {kAccountUsed, kGauge, "bytes", "account", "Charged to an account of the ledger now."},
    {kAccountLimit, kGauge, "bytes", "account", "Limit of an account that has its own."},
    {kAccountPeak, kGauge, "bytes", "account", "Highest charge of an account since the start."},
    {kLease, kGauge, "bytes", kWorker, "Memory the worker keeps above its ready state."},
    {kGrant, kGauge, "bytes", kWorker, "Tensor bytes that the running batch may use."},
    {kResident, kGauge, "bytes", kWorker, "Anonymous resident bytes of the worker, read by the front."},
    {kWorkerDevice, kGauge, "bytes", "model,version,worker,device",
     "What the worker's process holds on its device, context included."},
    {kDevice, kGauge, "bytes", "device,what", "What the driver says of a device: total, used, free."},
    {kWorkerMemory, kGauge, "bytes", "model,version,worker,account",
     "What the resident bytes consist of: libraries, weights, tensors, caches, remainder."},
    {kRetained, kGauge, "bytes", kWorker, "Live tensor bytes after a batch above those after loading."},
    {kRetention, kGauge, "bytes", kWorker,
     "What a row leaves behind; 0 unless the model was found to keep bytes."},
    {kRetentionLeft, kGauge, "seconds", kWorker,
     "Until what is kept takes the room of the largest batch, at the present pace; +Inf without retention."},
    {kWorkerState, kGauge, "1", "model,version,worker,state", "1 for the state the worker is in."},
    {kWorkerDeaths, kCounter, "1", kModel, "Workers that ended without being asked to."},
    {kRotations, kCounter, "1", "model,reason,result", "Replacements of a worker: done, failed or refused."},
    {kRotationGivenBack, kCounter, "bytes", "model", "Given back to the ledger by replacing workers."},
    {kModelReady, kGauge, "1", kModel, "1 while the model answers."},
    {kFallbacks, kCounter, "1", kModel, "Requests of a resting model that its fallback took."},
    {kObservedRefusals, kCounter, "1", "model,version,reason",
     "Requests that were let in although prediction would have refused them."},
    {kLadderStep, kGauge, "1", kModel, "Step of the degradation ladder; 0 is undegraded."},
    {kBugs, kCounter, "1", "", "Things that should not happen, survived. Alert on any."},
    {kConnections, kGauge, "1", "port", "Open client connections."},
    {kHttpReplies, kCounter, "1", "port,status", "Replies by HTTP status."},
    {kBuildInfo, kGauge, "1", "version", "Always 1."},
    {kNvSuccess, kCounter, "1", kModel, "Triton: number of successful inference requests."},
    {kNvFailure, kCounter, "1", kModel, "Triton: number of failed inference requests."},
    {kNvCount, kCounter, "1", kModel, "Triton: number of inferences (rows)."},
    {kNvExecCount, kCounter, "1", kModel, "Triton: number of model executions (batches)."},
    {kNvRequestUs, kCounter, "microseconds", kModel, "Triton: cumulative end-to-end request time."},
    {kNvQueueUs, kCounter, "microseconds", kModel, "Triton: cumulative time requests waited in the lane."},
    {kNvComputeInferUs, kCounter, "microseconds", kModel, "Triton: cumulative time of executing batches."},
    {kNvPending, kGauge, "1", kModel, "Triton: rows waiting for execution."},
    {kNvLoadSeconds, kGauge, "seconds", kModel, "Triton: time the model took to load."},
});

constexpr auto kSecondsBounds = std::to_array<double>({0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                       0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60});
constexpr auto kRowsBounds = std::to_array<double>({1, 2, 4, 8, 16, 32, 64, 128, 256});
constexpr auto kRatioBounds =
    std::to_array<double>({0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1});

}  // namespace

std::span<const MetricInfo> metric_table() { return kTable; }

const MetricInfo* find_metric(std::string_view name) {
  for (const MetricInfo& info : kTable) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::span<const double> bucket_bounds(Buckets buckets) {
  switch (buckets) {
    case Buckets::kNone: return {};
    case Buckets::kSeconds: return kSecondsBounds;
    case Buckets::kRows: return kRowsBounds;
    case Buckets::kRatio: return kRatioBounds;
  }
  return {};
}

std::string_view metric_type_name(MetricType type) {
  switch (type) {
    case kCounter: return "counter";
    case kGauge: return "gauge";
    case kHistogram: return "histogram";
  }
  return "untyped";
}

}  // namespace tonnage::telemetry
