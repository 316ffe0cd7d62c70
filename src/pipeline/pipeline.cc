// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/lease.h"
#include "planner/share.h"

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
  host_.budget.root().child("rotation");
  host_.budget.on_release([this] { memory_came_back(); });
  host_.budget.on_shortage([this] { make_room(); });
  if (host_.devices != nullptr) {
    host_.devices->on_release([this] { memory_came_back(); });
    host_.devices->on_shortage([this] { make_room(); });
  }
}

Pipeline::~Pipeline() {
  host_.budget.on_release(nullptr);
  host_.budget.on_shortage(nullptr);
  if (host_.devices != nullptr) {
    host_.devices->on_release(nullptr);
    host_.devices->on_shortage(nullptr);
  }
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
  TONNAGE_TRY(check_fallbacks(spec));
  auto model = std::make_unique<ServedModel>(std::move(spec));
  TONNAGE_TRY(find_device(*model));
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

Status Pipeline::find_device(ServedModel& model) {
  const std::string& name = model.spec->device;
  if (name.empty()) return Status::ok();
  const auto named = [&](const Status& why) {
    return Status(why.code(), why.reason(),
                  fmt::format("model '{}' is for {}: {}", model.spec->name, name, why.detail()));
  };
  if (host_.devices == nullptr) return named({Code::kNotFound, "no_device", "no devices are served here"});
  auto ledger = host_.devices->ledger(name);
  if (!ledger.is_ok()) return named(ledger.status());
  model.device = *ledger;
  model.device->root().child("rotation");
  return Status::ok();
}

memory::Account& Pipeline::ledger_of(const ServedModel& model) const {
  return model.device != nullptr ? model.device->root() : host_.budget.root();
}

std::vector<memory::Account*> Pipeline::ledgers() const {
  std::vector<memory::Account*> all{&host_.budget.root()};
  if (host_.devices == nullptr) return all;
  for (const auto& [name, ledger] : host_.devices->all()) all.push_back(&ledger->root());
  return all;
}

request::RequestId Pipeline::submit(request::Request request) {
  const TimePoint now = host_.loop.now();
  const auto found = models_.find(request.model->name);
  if (found == models_.end()) {
    request.completion.answer(
        Status(Code::kNotFound, "unknown_model", "Request for unknown model: '" + request.model->name + "'"));
    return {};
  }
  ServedModel& asked = *found->second;
  ++asked.stats.requests;
  asked.ladder.turned_away(now);  // the next one may be its probe
  ServedModel* const runner = runner_of(asked);
  Status refused = runner == nullptr ? resting_status() : admit(*runner, request, now);
  if (!refused.is_ok()) {
    ++asked.stats.refused;
    request.envelope.release();
    request.completion.answer(std::move(refused));
    return {};
  }
  if (runner != &asked) {
    ++asked.stats.fallbacks;
    request.model = runner->spec;
    request.fallback_model = runner->spec->name;
  }
  const request::RequestId id = open_.open(std::move(request));
  if (Status full = enqueue(*runner, id, *open_.find(id)); !full.is_ok()) {
    ++asked.stats.refused;
    open_.fail(id, full);
    return {};
  }
  schedule_drive();
  return id;
}

Status Pipeline::admit(ServedModel& model, request::Request& request, TimePoint now) {
  if (draining_) return {Code::kUnavailable, "draining", "the server is shutting down"};
  if (!model.poison.empty()) {
    const std::uint32_t units = model.spec->rows == model::RowsRule::kTogether ? request.rows : 1;
    for (std::uint32_t row = 0; row < request.rows; row += units) {
      if (!model.poison.knows(content_hash(request, row, units), now)) continue;
      return verdict_status(Verdict::kPoison, fmt::format("row {} did so before", row));
    }
  }
  admission::Question question;
  question.spec = model.spec.get();
  question.cost = model.cost ? &*model.cost : nullptr;
  question.rows = model.spec->rows == model::RowsRule::kTogether ? request.rows : 1;
  question.longest = request.lengths.empty() ? request.length : std::ranges::max(request.lengths);
  question.envelope = request.envelope.amount();
  question.ingress_limit = options_.ingress_limit;
  question.ready = model.accepts();
  if (question.ready) {
    question.largest_possible_grant = largest_possible_grant(model, admission::needed_grant(question));
    if (request.deadline != kNever) question.load = load_of(model, question.longest, now);
  } else {
    question.not_ready_why = model.why_not_ready();
  }
  question.now = now;
  question.deadline = request.deadline;
  question.jitter = random_.unit();
  Status decided = admission::decide(question);
  if (decided.is_ok() || model.enforce == model::Enforce::kOn) return decided;
  TONNAGE_TRY(admission::decide_by_facts(question));
  observe_refusal(model, request, decided);
  return Status::ok();
}

admission::Load Pipeline::load_of(ServedModel& model, std::uint32_t length, TimePoint now) const {
  const bool is_long = model.lane_for(length).is_long;
  admission::Load load;
  load.work_ahead = model.work_ahead(is_long);
  load.residual = model.residual(now, is_long);
  const Duration bound = model.batch_bound(is_long);
  if (load.work_ahead >= bound) load.batch = bound;
  if (load.work_ahead > Duration{}) load.share = share_of(model);  // of nothing, any share is nothing
  load.actual_over_predicted = model.drift() * model.pace(is_long);
  load.workers = model.workers_for(is_long);
  return load;
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
  model.tighten_lanes();
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
  if (request.fallback_model.empty()) {
    const auto found = models_.find(request.model->name);
    if (found != models_.end()) found->second->forget_rows(id);
    return;
  }
  // Rows that failed elsewhere meanwhile may lie with the model that was asked.
  for (auto& [name, model] : models_) model->forget_rows(id);
}

// What comes back by itself: envelopes are short-lived, and idle leases shrink on trim.
Bytes Pipeline::returnable(const ServedModel& model) const {
  Bytes sum;
  for (const memory::Account* account : ledger_of(model).children()) {
    if (account->name() == "envelopes" || account->name() == "ingress") sum += account->used();
  }
  for (const auto& [name, other] : models_) {
    for (const WorkerSlot& slot : other->workers) {
      if (other.get() != &model && other->device == model.device) sum += slot.worker->lease();
    }
  }
  return sum;
}

Bytes Pipeline::largest_possible_grant(const ServedModel& model, Bytes enough) const {
  Bytes largest;
  for (const WorkerSlot& slot : model.workers) {
    // A worker that is being replaced will have again what it had.
    largest = std::max(largest, slot.starting_since != kNever || slot.worker->memory().base == Bytes()
                                    ? slot.grant_when_ready
                                    : slot.worker->largest_grant_when_trimmed());
  }
  if (largest >= enough) return largest;  // as a rule; who else holds what need not be looked at
  return largest + memory::Lease::usable(returnable(model) + rotator_.held(model));
}

std::uint32_t Pipeline::free_tokens() const {
  std::uint32_t held = 0;
  for (const auto& [name, model] : models_) {
    if (model->warm_up) held += model->workers.front().tokens;
    for (const WorkerSlot& slot : model->workers) {
      if (slot.in_flight) held += slot.tokens;
    }
  }
  return held >= options_.compute_tokens ? 0 : options_.compute_tokens - held;
}

double Pipeline::share_of(const ServedModel& model) const {
  std::vector<planner::Sharer> sharers{{model.spec->weight, model.tokens(options_.compute_tokens)}};
  for (const auto& [name, other] : models_) {
    if (other.get() == &model || !other->has_work()) continue;
    sharers.push_back({other->spec->weight, other->tokens(options_.compute_tokens)});
  }
  return planner::share_of_first(std::move(sharers), options_.compute_tokens);
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
