// SPDX-License-Identifier: Apache-2.0
#include "api/status_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/bug.h"
#include "base/json_text.h"
#include "model/route.h"
#include "supervisor/names.h"

namespace tonnage::api {
namespace {

using pipeline::ModelPhase;
using pipeline::ServedModel;
using supervisor::WorkerState;

std::string_view phase_name(ModelPhase phase) {
  switch (phase) {
    case ModelPhase::kLoading: return "loading";
    case ModelPhase::kWarmingUp: return "warming_up";
    case ModelPhase::kReady: return "ready";
    case ModelPhase::kFailed: return "failed";
  }
  return "unknown";
}

void append_account(std::string& out, const memory::Account& account) {
  fmt::format_to(std::back_inserter(out), "{{\"name\":{},\"used\":{},\"peak\":{},\"limit\":{},\"children\":[",
                 json_string(account.name()), account.used().count(), account.peak().count(),
                 account.limit() == Bytes::max() ? "null" : std::to_string(account.limit().count()));
  bool first = true;
  for (const memory::Account* child : account.children()) {
    if (!std::exchange(first, false)) out += ',';
    append_account(out, *child);
  }
  out += "]}";
}

// null until the worker was asked.
std::string accounts_json(const std::optional<memory::WorkerAccounts>& accounts) {
  if (!accounts) return "null";
  return fmt::format(
      "{{\"libraries\":{},\"weights\":{},\"tensors\":{},\"caches\":{},\"runtime\":{},\"remainder\":{}}}",
      accounts->libraries.count(), accounts->weights.count(), accounts->tensors.count(),
      accounts->caches.count(), accounts->runtime.count(), accounts->remainder);
}

// null where nothing is kept.
std::string retention_json(const memory::RetentionForecast& retention) {
  if (!retention.is_named) return "null";
  return fmt::format(
      "{{\"bytes_per_row\":{:.1f},\"kept_bytes\":{},\"rows_left\":{},\"seconds_left\":{:.1f}}}",
      retention.bytes_per_row, retention.kept.count(), retention.rows_left, to_seconds(retention.time_left));
}

// null in the host's memory. The four are of the device's ledger, but `use_bytes`, which is what the driver,
// or else the worker, says that the process holds.
std::string device_json(const ServedModel& model, const std::optional<supervisor::DeviceMemory>& memory) {
  if (!memory || model.device == nullptr) return "null";
  return fmt::format(
      "{{\"name\":{},\"base_bytes\":{},\"weights_bytes\":{},\"lease_bytes\":{},\"use_bytes\":{}}}",
      json_string(model.device->name()), memory->base.count(), memory->weights.count(), memory->lease.count(),
      memory->use.count());
}

void append_devices(std::string& out, const memory::Devices& devices) {
  bool first = true;
  for (const auto& [name, ledger] : devices.all()) {
    if (!std::exchange(first, false)) out += ',';
    fmt::format_to(std::back_inserter(out), "{{\"name\":{},\"budget_bytes\":{},\"used_bytes\":{},",
                   json_string(name), ledger->root().limit().count(), ledger->root().used().count());
    if (const auto& seen = ledger->reading()) {
      fmt::format_to(std::back_inserter(out), "\"total_bytes\":{},\"in_use_bytes\":{},", seen->total.count(),
                     seen->used.count());
    } else {
      out += "\"total_bytes\":null,\"in_use_bytes\":null,";
    }
    out += "\"accounts\":";
    append_account(out, ledger->root());
    out += '}';
  }
}

void append_worker(std::string& out, const ServedModel& model, const pipeline::WorkerSlot& slot) {
  const supervisor::WorkerMemory memory = slot.worker->memory();
  fmt::format_to(
      std::back_inserter(out),
      "{{\"name\":{},\"state\":{},\"pid\":{},\"deaths\":{},\"threads\":{},\"base_bytes\":{},"
      "\"weights_bytes\":{},"
      "\"lease_bytes\":{},\"grant_bytes\":{},\"live_bytes\":{},\"live_baseline_bytes\":{},"
      "\"resident_bytes\":{},\"device\":{},\"accounts\":{},\"retention\":{},"
      "\"enforcement\":\"{}\",\"last_error\":{}}}",
      json_string(slot.worker->options().name), json_string(supervisor::state_name(slot.worker->state())),
      slot.worker->pid(), slot.worker->deaths(), slot.worker->options().threads, memory.base.count(),
      memory.weights.count(), memory.lease.count(), memory.grant.count(), memory.live.count(),
      memory.live_baseline.count(), memory.reading.anonymous.count(), device_json(model, memory.device),
      accounts_json(memory.accounts), retention_json(memory.retention), model::tier_name(model.spec->tier()),
      json_string(slot.worker->last_error().is_ok() ? "" : slot.worker->last_error().detail()));
}

// What batches of 64 (or the model's own maximum) padded to the longest length seen would have needed.
Bytes fifo_would_need(const ServedModel& model) {
  if (!model.cost || model.workers.empty()) return Bytes();
  const supervisor::WorkerMemory memory = model.workers.front().worker->memory();
  const cost::Shape worst{model.spec->batching.max_rows,
                          std::max(model.stats.longest, model.spec->padded(1))};
  return memory.when_ready() + model.cost->predict_peak(worst);
}

void append_cost(std::string& out, const ServedModel& model) {
  if (!model.cost) {
    out += "null";
    return;
  }
  fmt::format_to(std::back_inserter(out), "{{\"determinism\":\"{}\",\"margin\":{:.6f},\"drift\":{:.4f}}}",
                 cost::determinism_name(model.cost->determinism()), model.cost->margin(),
                 model.cost->drift());
}

void append_sharing(std::string& out, const ServedModel& model) {
  const pipeline::Safety safety = pipeline::safe_to_enforce(model.enforce, model.observed);
  fmt::format_to(std::back_inserter(out),
                 "\"fallback\":{},\"fallback_trouble\":{},\"fallback_requests\":{},\"enforce\":\"{}\","
                 "\"observed_refusals\":{},\"safe_to_enforce\":{},\"safe_to_enforce_why\":{},",
                 json_string(model.spec->fallback),
                 json_string(model.fallback_trouble.is_ok() ? "" : model.fallback_trouble.detail()),
                 model.stats.fallbacks, model::enforce_name(model.enforce), model.observed.refusals,
                 safety.is_safe, json_string(safety.why));
}

void append_model(std::string& out, const ServedModel& model, bool is_ready) {
  const pipeline::RunningStats& stats = model.stats;
  auto into = std::back_inserter(out);
  fmt::format_to(into, "{{\"name\":{},\"version\":{},\"route\":{},\"phase\":\"{}\",\"ready\":{},\"why\":{},",
                 json_string(model.spec->name), json_string(model.spec->version),
                 json_string(model.spec->route), model.is_leaving ? "unloading" : phase_name(model.phase),
                 is_ready, json_string(model.trouble.is_ok() ? "" : model.trouble.detail()));
  fmt::format_to(into,
                 "\"cold_start_ms\":{:.1f},\"waiting_rows\":{},\"work_ahead_ms\":{:.2f},\"ladder_step\":{},"
                 "\"ladder\":\"{}\",\"max_rows\":{},\"weight\":{},",
                 to_millis(model.cold_start), model.waiting_rows(),
                 to_millis(model.waiting_work()) * model.drift(), model.ladder.step(),
                 pipeline::rung_name(model.ladder.rung()), model.ladder.max_rows(), model.spec->weight);
  append_sharing(out, model);
  fmt::format_to(
      into,
      "\"requests\":{},\"refused\":{},\"failed_rows\":{},\"batches\":{},\"rows\":{},\"real_tokens\":{},"
      "\"padded_tokens\":{},\"over_grants\":{},\"pressures\":{},\"retried_rows\":{},\"poison_rows\":{},"
      "\"worker_deaths\":{},\"longest\":{},",
      stats.requests, stats.refused, stats.failed, stats.batches, stats.rows, stats.real_tokens,
      stats.padded_tokens, stats.over_grants, stats.pressures, stats.retried_rows, stats.poison_rows,
      model.deaths(), stats.longest);
  Bytes base;
  Bytes weights;
  for (const pipeline::WorkerSlot& slot : model.workers) {
    base += slot.worker->memory().base;
    weights += slot.worker->memory().weights;
  }
  fmt::format_to(
      into,
      "\"peak_error_median\":{:.9f},\"peak_error_worst\":{:.9f},\"peak_highest_bytes\":{},\"base_bytes\":{},"
      "\"weights_bytes\":{},\"fifo_would_need_bytes\":{},\"long_rows_delay_short\":{},\"cost\":",
      stats.peak_error_median(), stats.peak_error_worst, stats.peak_highest.count(), base.count(),
      weights.count(), fifo_would_need(model).count(), model.lanes.size() > 1 && model.workers.size() == 1);
  append_cost(out, model);
  out += ",\"workers\":[";
  for (std::size_t i = 0; i < model.workers.size(); ++i) {
    if (i > 0) out += ',';
    append_worker(out, model, model.workers[i]);
  }
  out += "]}";
}

}  // namespace

std::string status_json(const memory::Account& root, const pipeline::Pipeline& pipeline, bool ready) {
  std::string out = fmt::format(
      "{{\"version\":\"{}\",\"ready\":{},\"budget_bytes\":{},\"used_bytes\":{},\"open_requests\":{},\"bugs\":"
      "{},\"accounts\":",
      TONNAGE_VERSION, ready, root.limit().count(), root.used().count(), pipeline.open_requests(),
      bug_count());
  append_account(out, root);
  out += ",\"devices\":[";
  if (pipeline.devices() != nullptr) append_devices(out, *pipeline.devices());
  out += "],\"models\":[";
  bool first = true;
  for (const ServedModel* model : pipeline.models()) {
    if (!std::exchange(first, false)) out += ',';
    append_model(out, *model, pipeline.is_ready(*model));
  }
  out += "]}";
  return out;
}

}  // namespace tonnage::api
