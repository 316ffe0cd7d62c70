// SPDX-License-Identifier: Apache-2.0
#include "api/model_metrics.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "base/bug.h"
#include "supervisor/names.h"
#include "telemetry/metric_names.h"

namespace tonnage::api {
namespace {

namespace metric = telemetry::metric;
using pipeline::labels_of;

// Written anew each time: a worker or account that is gone leaves no last value behind.
constexpr std::string_view kWrittenAnew[] = {
    metric::kAccountUsed, metric::kAccountPeak,   metric::kAccountLimit, metric::kWorkerState,
    metric::kLease,       metric::kGrant,         metric::kResident,     metric::kRetained,
    metric::kRetention,   metric::kRetentionLeft, metric::kWorkerMemory, metric::kWorkerDevice,
    metric::kDevice};

telemetry::Labels with(telemetry::Labels labels, std::string key, std::string value) {
  labels.emplace_back(std::move(key), std::move(value));
  return labels;
}

std::string outcome_of(const Status& status) {
  if (status.is_ok()) return "answered";
  return status.code() == Code::kInternal ? "failed" : "refused";
}

double number(Bytes bytes) { return static_cast<double>(bytes.count()); }

void raise_to(telemetry::Counter& counter, std::uint64_t value) {
  if (value > counter.value()) counter.add(value - counter.value());
}

void publish_account(const memory::Account& account, const std::string& path, telemetry::Registry& metrics) {
  metrics.gauge(metric::kAccountUsed, {{"account", path}}).set(number(account.used()));
  metrics.gauge(metric::kAccountPeak, {{"account", path}}).set(number(account.peak()));
  if (account.limit() != Bytes::max()) {
    metrics.gauge(metric::kAccountLimit, {{"account", path}}).set(number(account.limit()));
  }
  for (const memory::Account* child : account.children())
    publish_account(*child, path + "/" + child->name(), metrics);
}

void publish_memory(const memory::WorkerAccounts& seen, const telemetry::Labels& labels,
                    telemetry::Registry& metrics) {
  const std::pair<const char*, double> accounts[] = {{"libraries", number(seen.libraries)},
                                                     {"weights", number(seen.weights)},
                                                     {"tensors", number(seen.tensors)},
                                                     {"caches", number(seen.caches)},
                                                     {"remainder", static_cast<double>(seen.remainder)}};
  for (const auto& [account, bytes] : accounts)
    metrics.gauge(metric::kWorkerMemory, with(labels, "account", account)).set(bytes);
}

void publish_devices(const memory::Devices& devices, telemetry::Registry& metrics) {
  for (const auto& [name, ledger] : devices.all()) {
    publish_account(ledger->root(), name, metrics);
    if (!ledger->reading()) continue;
    const memory::DeviceReading& seen = *ledger->reading();
    const std::pair<const char*, Bytes> all[] = {
        {"total", seen.total}, {"used", seen.used}, {"free", seen.free}};
    for (const auto& [what, bytes] : all)
      metrics.gauge(metric::kDevice, {{"device", name}, {"what", what}}).set(number(bytes));
  }
}

void publish_workers(const pipeline::ServedModel& model, telemetry::Registry& metrics) {
  for (const pipeline::WorkerSlot& slot : model.workers) {
    const supervisor::WorkerMemory memory = slot.worker->memory();
    const telemetry::Labels labels = with(labels_of(*model.spec), "worker", slot.worker->options().name);
    for (const supervisor::WorkerState state : supervisor::kWorkerStates) {
      metrics.gauge(metric::kWorkerState, with(labels, "state", std::string(supervisor::state_name(state))))
          .set(slot.worker->state() == state ? 1 : 0);
    }
    metrics.gauge(metric::kLease, labels).set(number(memory.lease));
    metrics.gauge(metric::kGrant, labels).set(number(memory.grant));
    metrics.gauge(metric::kResident, labels).set(number(memory.reading.anonymous));
    if (memory.device && model.device != nullptr) {
      metrics.gauge(metric::kWorkerDevice, with(labels, "device", model.device->name()))
          .set(number(memory.device->use));
    }
    if (memory.accounts) publish_memory(*memory.accounts, labels, metrics);
    metrics.gauge(metric::kRetained, labels).set(number(memory.retention.kept));
    metrics.gauge(metric::kRetention, labels).set(memory.retention.bytes_per_row);
    metrics.gauge(metric::kRetentionLeft, labels)
        .set(memory.retention.is_named ? to_seconds(memory.retention.time_left)
                                       : std::numeric_limits<double>::infinity());
  }
}

void publish_batches(const pipeline::ServedModel& model, telemetry::Registry& metrics) {
  const pipeline::RunningStats& stats = model.stats;
  const telemetry::Labels labels = labels_of(*model.spec);
  raise_to(metrics.counter(metric::kRows, labels), stats.rows);
  raise_to(metrics.counter(metric::kBatches, labels), stats.batches);
  raise_to(metrics.counter(metric::kRealTokens, labels), stats.real_tokens);
  raise_to(metrics.counter(metric::kPaddedTokens, labels), stats.padded_tokens);
  raise_to(metrics.counter(metric::kOverGrants, labels), stats.over_grants);
  raise_to(metrics.counter(metric::kPressure, labels), stats.pressures);
  raise_to(metrics.counter(metric::kRetries, labels), stats.retried_rows);
  raise_to(metrics.counter(metric::kPoisonRows, labels), stats.poison_rows);
  raise_to(metrics.counter(metric::kFallbacks, labels), stats.fallbacks);
  raise_to(metrics.counter(metric::kWorkerDeaths, labels), model.deaths());
  raise_to(metrics.counter(metric::kNvExecCount, labels), stats.batches);
  metrics.gauge(metric::kNvPending, labels).set(static_cast<double>(model.waiting_rows()));
}

}  // namespace

RequestMetrics::Series& RequestMetrics::series_of(const model::ModelSpec& spec) {
  const auto found = series_.find(spec.name);
  if (found != series_.end()) return found->second;
  const telemetry::Labels labels = labels_of(spec);
  Series series;
  series.answered =
      &registry_.counter(metric::kRequests, with(with(labels, "outcome", "answered"), "reason", "ok"));
  series.seconds = &registry_.histogram(metric::kRequestSeconds, labels);
  series.nv_success = &registry_.counter(metric::kNvSuccess, labels);
  series.nv_failure = &registry_.counter(metric::kNvFailure, labels);
  series.nv_count = &registry_.counter(metric::kNvCount, labels);
  series.nv_request_us = &registry_.counter(metric::kNvRequestUs, labels);
  return series_.emplace(spec.name, series).first->second;
}

void RequestMetrics::count(const model::ModelSpec* spec, const Status& status, Duration took,
                           std::uint32_t rows) {
  if (spec != nullptr && status.is_ok()) {
    const Series& series = series_of(*spec);
    series.answered->add();
    series.seconds->observe(to_seconds(took));
    series.nv_success->add();
    series.nv_count->add(rows);
    series.nv_request_us->add(static_cast<std::uint64_t>(took.count() / 1000));
    return;
  }
  telemetry::Labels labels{{"model", spec == nullptr ? "" : spec->name},
                           {"version", spec == nullptr ? "" : spec->version}};
  if (spec != nullptr) {
    series_of(*spec).nv_failure->add();
    if (status.code() == Code::kCancelled) registry_.counter(metric::kCancelledRows, labels).add(rows);
    if (status.code() == Code::kDeadlineExceeded) registry_.counter(metric::kExpiredRows, labels).add(rows);
  }
  labels =
      with(with(std::move(labels), "outcome", outcome_of(status)), "reason", std::string(status.reason()));
  registry_.counter(metric::kRequests, labels).add();
}

void RequestMetrics::truncated(const model::ModelSpec& spec, std::uint32_t rows) {
  registry_.counter(metric::kTruncatedRows, labels_of(spec)).add(rows);
}

void RequestMetrics::chunked(const model::ModelSpec& spec, std::uint32_t rows) {
  registry_.counter(metric::kChunkedRows, labels_of(spec)).add(rows);
}

void RequestMetrics::forget(const std::string& model) {
  series_.erase(model);
  registry_.forget("model", model);
}

void publish(const memory::Account& root, const pipeline::Pipeline& pipeline, telemetry::Registry& metrics) {
  for (const std::string_view name : kWrittenAnew) metrics.forget_all(name);
  publish_account(root, root.name(), metrics);
  if (pipeline.devices() != nullptr) publish_devices(*pipeline.devices(), metrics);
  raise_to(metrics.counter(metric::kBugs), bug_count());
  metrics.gauge(metric::kBuildInfo, {{"version", TONNAGE_VERSION}}).set(1);
  for (const pipeline::ServedModel* model : pipeline.models()) {
    const telemetry::Labels labels = labels_of(*model->spec);
    metrics.gauge(metric::kModelReady, labels).set(pipeline.is_ready(*model) ? 1 : 0);
    metrics.gauge(metric::kLadderStep, labels).set(model->ladder.step());
    metrics.gauge(metric::kNvLoadSeconds, labels).set(to_seconds(model->cold_start));
    const double drift = model->drift();
    if (model->cost) metrics.gauge(metric::kTimeDrift, labels).set(drift);
    for (const pipeline::LaneSlot& slot : model->lanes) {
      const telemetry::Labels lane = with(labels, "class", slot.is_long ? "long" : "short");
      metrics.gauge(metric::kLaneRows, lane).set(static_cast<double>(slot.lane.rows()));
      metrics.gauge(metric::kLaneSeconds, lane).set(to_seconds(slot.lane.work()) * drift);
    }
    publish_batches(*model, metrics);
    publish_workers(*model, metrics);
  }
}

}  // namespace tonnage::api
