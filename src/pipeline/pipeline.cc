// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "admission/admission.h"
#include "memory/lease.h"

namespace tonnage::pipeline {
namespace {

// Slots and envelopes are sized before a worker is started, so the sizes must be written down.
Status check_servable(const model::ModelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty()) {
    return invalid("bad_config",
                   fmt::format("model '{}': model.toml must list its [[input]] and [[output]]", spec.name));
  }
  for (const model::TensorSpec& input : spec.inputs) {
    if (input.type != tensor::DataType::kBytes) continue;
    return invalid("bad_config",
                   fmt::format("model '{}': input '{}' is BYTES; strings are taken by models with a "
                               "[tokenizer], whose inputs are ids",
                               spec.name, input.name));
  }
  return Status::ok();
}

}  // namespace

Pipeline::Pipeline(PipelineOptions options, Host host)
    : options_(std::move(options)),
      host_(host),
      random_(options_.seed),
      open_(host_.loop,
            [this](request::RequestId id, const request::Request& request) { forget_rows(id, request); }),
      rotator_(rotator_host()) {
  host_.budget.on_release([this] { memory_came_back(); });
}

Pipeline::~Pipeline() {
  host_.budget.on_release(nullptr);
  stop();
  // Workers go first: they answer what they run into the records that follow.
  for (auto& [name, model] : models_) {
    for (WorkerSlot& slot : model->workers) slot.worker.reset();
  }
}

Status Pipeline::add_model(model::ModelSpec spec) {
  TONNAGE_TRY(check_servable(spec));
  if (models_.contains(spec.name)) {
    return {Code::kAlreadyExists, "model_exists", fmt::format("model '{}' is served already", spec.name)};
  }
  auto model = std::make_unique<ServedModel>(std::move(spec));
  for (LaneSlot& slot : model->lanes) {
    if (free_lane_numbers_.empty()) free_lane_numbers_.push_back(next_lane_number_++);
    slot.number = free_lane_numbers_.back();
    free_lane_numbers_.pop_back();
  }
  if (host_.metrics != nullptr) {
    model->metrics = std::make_unique<BatchMetrics>(*host_.metrics, *model->spec);
  }
  ServedModel& added = *models_.emplace(model->spec->name, std::move(model)).first->second;
  start_workers(added);
  return Status::ok();
}

request::RequestId Pipeline::submit(request::Request request) {
  const TimePoint now = host_.loop.now();
  const auto found = models_.find(request.model->name);
  if (found == models_.end()) {
    request.completion.answer(
        Status(Code::kNotFound, "unknown_model", "Request for unknown model: '" + request.model->name + "'"));
    return {};
  }
  ServedModel& model = *found->second;
  ++model.stats.requests;
  if (Status refused = admit(model, request, now); !refused.is_ok()) {
    ++model.stats.refused;
    request.envelope.release();
    request.completion.answer(std::move(refused));
    return {};
  }
  const request::RequestId id = open_.open(std::move(request));
  if (Status full = enqueue(model, id, *open_.find(id)); !full.is_ok()) {
    ++model.stats.refused;
    open_.fail(id, full);
    return {};
  }
  schedule_drive();
  return id;
}

Status Pipeline::admit(ServedModel& model, const request::Request& request, TimePoint now) {
  if (draining_) return {Code::kUnavailable, "draining", "the server is shutting down"};
  if (!model.poison.empty()) {
    for (std::uint32_t row = 0; row < request.rows; ++row) {
      if (!model.poison.knows(row_hash(request, row), now)) continue;
      return verdict_status(Verdict::kPoison, fmt::format("row {} did so before", row));
    }
  }
  if (model.ladder.is_refusing()) {
    model.ladder.refused();
    return Status(Code::kOverloaded, "degraded", "the model runs out of memory even with batches of one")
        .with_retry_after(1);
  }
  admission::Question question;
  question.spec = model.spec.get();
  question.cost = model.cost ? &*model.cost : nullptr;
  question.rows = model.spec->rows == model::RowsRule::kTogether ? request.rows : 1;
  question.longest = request.lengths.empty() ? request.length : std::ranges::max(request.lengths);
  question.envelope = request.envelope.amount();
  question.ingress_limit = options_.ingress_limit;
  question.largest_possible_grant = largest_possible_grant(model);
  question.ready = model.accepts();
  question.not_ready_why = model.trouble.is_ok() ? "the model is still loading" : model.trouble.detail();
  question.load.work_ahead = model.work_ahead();
  question.load.residual = model.residual(now);
  question.load.workers = static_cast<std::uint32_t>(model.workers.size());
  question.now = now;
  question.deadline = request.deadline;
  question.jitter = random_.unit();
  return admission::decide(question);
}

Status Pipeline::enqueue(ServedModel& model, request::RequestId id, const request::Request& request) {
  lane::QueuedRow row;
  row.request = id;
  row.priority = request.priority;
  row.enqueued = host_.loop.now();
  row.deadline = request.deadline;
  const auto group_of = [&](std::uint32_t i) {
    return model.spec->sizes.empty() ? 0 : model.spec->group_of(request.row_size(i));
  };
  if (model.spec->rows == model::RowsRule::kTogether) {
    row.units = request.rows;
    row.group = group_of(0);  // the codec lets rows of one group together only
    row.length = request.lengths.empty() ? request.length : std::ranges::max(request.lengths);
    row.work = model.work_of_row(row.length) * request.rows;
    return model.lane_for(row.length).lane.push({&row, 1});
  }
  std::vector<std::vector<lane::QueuedRow>> by_lane(model.lanes.size());
  for (row.row = 0; row.row < request.rows; ++row.row) {
    row.length = request.row_length(row.row);
    row.group = group_of(row.row);
    row.work = model.work_of_row(row.length);
    by_lane[model.lane_for(row.length).is_long ? 1 : 0].push_back(row);
  }
  for (std::size_t i = 0; i < by_lane.size(); ++i) {
    if (by_lane[i].empty()) continue;
    // A refusal closes the request, which takes back what another lane already holds.
    TONNAGE_TRY(model.lanes[i].lane.push(by_lane[i]));
  }
  return Status::ok();
}

void Pipeline::cancel(request::RequestId id) {
  open_.fail(id, {Code::kCancelled, "cancelled", "the client left"});
}

void Pipeline::forget_rows(request::RequestId id, const request::Request& request) {
  const auto found = models_.find(request.model->name);
  if (found == models_.end()) return;
  ServedModel& model = *found->second;
  if (model.waiting_rows() == 0) return;
  for (LaneSlot& slot : model.lanes) slot.lane.remove(id);
  for (Group& group : model.retries) {
    std::erase_if(group.rows, [id](const lane::QueuedRow& row) { return row.request == id; });
  }
  std::erase_if(model.retries, [](const Group& group) { return group.rows.empty(); });
}

// What comes back by itself: envelopes are short-lived, and idle leases shrink on trim.
Bytes Pipeline::returnable(const ServedModel& model) const {
  Bytes sum;
  for (const memory::Account* account : host_.budget.root().children()) {
    if (account->name() == "envelopes" || account->name() == "ingress") sum += account->used();
  }
  for (const auto& [name, other] : models_) {
    for (const WorkerSlot& slot : other->workers) {
      if (other.get() != &model) sum += slot.worker->memory().lease;
    }
  }
  return sum;
}

Bytes Pipeline::largest_possible_grant(const ServedModel& model) const {
  Bytes largest;
  for (const WorkerSlot& slot : model.workers) {
    // A worker that is being replaced will have again what it had.
    largest = std::max(largest, slot.starting_since != kNever || slot.worker->memory().base == Bytes()
                                    ? slot.grant_when_ready
                                    : slot.worker->largest_grant());
  }
  return largest + memory::Lease::usable(returnable(model) + rotator_.held());
}

std::uint32_t Pipeline::free_tokens() const {
  std::uint32_t held = 0;
  for (const auto& [name, model] : models_) {
    if (model->warm_up) held += model->workers.front().worker->options().threads;
    for (const WorkerSlot& slot : model->workers) {
      if (slot.in_flight) held += slot.worker->options().threads;
    }
  }
  return held >= options_.compute_tokens ? 0 : options_.compute_tokens - held;
}

const ServedModel* Pipeline::find(std::string_view model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? nullptr : found->second.get();
}

std::vector<const ServedModel*> Pipeline::models() const {
  std::vector<const ServedModel*> all;
  all.reserve(models_.size());
  for (const auto& [name, model] : models_) all.push_back(model.get());
  return all;
}

void Pipeline::stop() {
  draining_ = true;
  rotator_.stop();
  open_.fail_all({Code::kUnavailable, "draining", "the server is shutting down"});
  for (auto& [name, model] : models_) {
    save_profile(*model);  // with what traffic has taught
    for (WorkerSlot& slot : model->workers) slot.worker->stop(Duration{});
  }
}

}  // namespace tonnage::pipeline
