// SPDX-License-Identifier: Apache-2.0
// Requests that another model runs, and requests that are run against the prediction.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/fallback.h"
#include "pipeline/pipeline.h"
#include "telemetry/metric_names.h"

namespace tonnage::pipeline {

// The new model's own mistake is an error. A model that is served already and reaches the new one goes on
// without its fallback, and says so; the others were checked when they came.
Status Pipeline::check_fallbacks(const model::ModelSpec& added) {
  const model::FindSpec find = [&](std::string_view name) -> const model::ModelSpec* {
    if (name == added.name) return &added;
    const auto found = models_.find(name);
    return found == models_.end() ? nullptr : found->second->spec.get();
  };
  const auto check = [&find](const model::ModelSpec& spec) {
    Status status = model::check_fallbacks(spec, find);
    return status.code() == Code::kNotFound ? Status::ok() : status;  // it may be added later
  };
  TONNAGE_TRY(check(added));
  for (auto& [name, model] : models_) {
    if (!model::falls_back_to(*model->spec, added.name, find)) continue;
    const bool was_used = model->fallback_trouble.is_ok();
    model->fallback_trouble = check(*model->spec);
    if (model->fallback_trouble.is_ok() || !was_used) continue;
    host_.log.error("fallback_unusable", {{"model", name}, {"why", model->fallback_trouble.detail()}});
  }
  return Status::ok();
}

ServedModel* Pipeline::runner_of(const ServedModel& model) const {
  auto found = models_.find(model.spec->name);
  // Fallbacks that were checked go in no circle; one that was exchanged since may.
  for (std::size_t i = 0; i < models_.size() && found != models_.end(); ++i) {
    ServedModel& at = *found->second;
    const bool can_run = i == 0 || at.accepts();
    if (can_run && !at.ladder.is_resting()) return &at;
    if (at.spec->fallback.empty() || !at.fallback_trouble.is_ok()) return nullptr;
    found = models_.find(at.spec->fallback);
  }
  return nullptr;
}

bool Pipeline::is_ready(const ServedModel& model) const {
  const ServedModel* runner = runner_of(model);
  return runner != nullptr && runner->is_ready();
}

void Pipeline::divert_waiting(ServedModel& model) {
  ServedModel* const runner = runner_of(model);
  if (runner == nullptr) return fail_waiting(model, resting_status());
  std::map<std::uint64_t, std::vector<lane::QueuedRow>> requests;
  for (const lane::QueuedRow& row : model.waiting()) {
    requests[(std::uint64_t{row.request.generation} << 32U) | row.request.index].push_back(row);
  }
  for (auto& [packed, rows] : requests) {
    const request::RequestId id = rows.front().request;
    model.forget_rows(id);
    divert(id, std::move(rows), *runner);
  }
  model.stats.fallbacks += requests.size();
}

// They were admitted once, so nothing refuses them again but their deadlines.
void Pipeline::divert(request::RequestId id, std::vector<lane::QueuedRow> rows, ServedModel& runner) {
  request::Request* const request = open_.find(id);
  if (request == nullptr) return;
  request->model = runner.spec;
  request->fallback_model = runner.spec->name;
  for (lane::QueuedRow& row : rows) {
    row.work = runner.work_of_row(row.length) * row.units;
    runner.lane_for(row.length).lane.put_back({&row, 1});
  }
}

Status Pipeline::set_enforce(std::string_view model, model::Enforce enforce) {
  const auto found = models_.find(model);
  if (found == models_.end()) {
    return {Code::kNotFound, "unknown_model", "Request for unknown model: '" + std::string(model) + "'"};
  }
  ServedModel& served = *found->second;
  if (std::exchange(served.enforce, enforce) == enforce) return Status::ok();
  served.observed = {};
  host_.log.info("enforce", {{"model", served.spec->name}, {"enforce", model::enforce_name(enforce)}});
  schedule_drive();
  return Status::ok();
}

void Pipeline::observe_refusal(ServedModel& model, request::Request& request, const Status& refusal) {
  ++model.observed.refusals;
  host_.log.warn("would_refuse",
                 {{"model", model.spec->name}, {"reason", refusal.reason()}, {"detail", refusal.detail()}});
  if (host_.metrics != nullptr) {
    host_.metrics
        ->counter(telemetry::metric::kObservedRefusals, {{"model", model.spec->name},
                                                         {"version", model.spec->version},
                                                         {"reason", std::string(refusal.reason())}})
        .add();
  }
  request.completion = Completion<request::Answer>(
      [this, name = model.spec->name, done = std::move(request.completion)](auto answer) mutable {
        const auto found = models_.find(name);
        if (answer.is_ok() && found != models_.end()) ++found->second->observed.answered;
        done.answer(std::move(answer));
      });
}

// The oldest row that prediction would never let run goes alone and with what there is. Only when its
// turn comes: what fits is older, or of higher priority, until then.
void Pipeline::release_observed(ServedModel& model) {
  if (!model.retries.empty()) return;
  const Bytes most = largest_possible_grant(model);
  for (LaneSlot& slot : model.lanes) {
    if (slot.lane.rows() == 0) continue;
    const lane::QueuedRow& first = slot.lane.window(model.spec->batching.window).front();
    if (model.cost->grant({first.units, model.spec->padded(first.length)}) <= most) continue;
    const std::uint16_t index = 0;
    Group group;
    group.rows = slot.lane.take({&index, 1});
    model.retries.push_back(std::move(group));
    return;
  }
}

}  // namespace tonnage::pipeline
