// SPDX-License-Identifier: Apache-2.0
#include "api/infer_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/envelope.h"
#include "api/model_metrics.h"
#include "api/status_json.h"
#include "api/text_rows.h"
#include "codec/inputs.h"
#include "codec/sagemaker/sagemaker.h"
#include "codec/v2/v2.h"

namespace tonnage::api {
namespace {

// Below this many bytes of text the hand-over to the pool costs more than tokenising in place.
constexpr std::size_t kInPlaceTextBytes = 2048;

}  // namespace

struct InferService::Call {
  CallId id;
  Dialect dialect = Dialect::kV2;
  model::ModelHandle spec;
  codec::Decoded decoded;
  memory::Charge envelope;
  request::RequestId request;  // once submitted
  bool is_submitted = false;
  // While the pool holds the texts, the envelope stays charged, whether the client waits or not.
  std::shared_ptr<std::atomic<bool>> left_pool_job;
  Loop::Timer deadline;  // until the pipeline watches it
  TimePoint arrived{};
  // What the encoder needs of the request after the pipeline has taken it.
  request::Request shell;
  Completion<Reply> done;
};

InferService::InferService(ServiceOptions options, Host host)
    : options_(std::move(options)),
      host_(host),
      ingress_(host_.budget.root().child("ingress", options_.ingress_limit)),
      envelopes_(host_.budget.root().child("envelopes")),
      request_metrics_(host_.metrics),
      control_(control_host(), options_.unload_drain) {
  host_.pipeline.on_model_change([this] { control_.model_changed(); });
}

InferService::~InferService() { host_.pipeline.on_model_change(nullptr); }

ModelControl::Host InferService::control_host() {
  ModelControl::Host host{host_.loop, host_.pipeline, host_.scan, {}, {}, {}};
  host.make_tokenizer = [this](const model::ModelSpec& spec) { return make_tokenizer(spec); };
  host.arrives = [this](const std::string& name, ModelControl::Tokenizer tokenizer) {
    broken_.erase(name);
    if (tokenizer != nullptr) tokenizers_[name] = std::move(tokenizer);
  };
  host.is_gone = [this](const std::string& name) {
    broken_.erase(name);
    tokenizers_.erase(name);
    request_metrics_.forget(name);
  };
  return host;
}

Result<ModelControl::Tokenizer> InferService::make_tokenizer(const model::ModelSpec& spec) const {
  if (!spec.tokenizer) return ModelControl::Tokenizer();
  if (spec.tokenizer->kind != "wordpiece") {
    return invalid("bad_config", fmt::format("model '{}': tokenizer kind '{}' is unknown; known is wordpiece",
                                             spec.name, spec.tokenizer->kind));
  }
  TONNAGE_ASSIGN(std::unique_ptr<text::Tokenizer> tokenizer,
                 text::make_wordpiece(spec.tokenizer->vocab, spec.tokenizer->lowercase));
  return ModelControl::Tokenizer(std::move(tokenizer));
}

Status InferService::add_tokenizer(const model::ModelSpec& spec) {
  TONNAGE_ASSIGN(ModelControl::Tokenizer tokenizer, make_tokenizer(spec));
  if (tokenizer != nullptr) tokenizers_[spec.name] = std::move(tokenizer);
  return Status::ok();
}

void InferService::administer(AdminCall call, Completion<Reply> done) {
  if (draining_) return done.answer(Status(Code::kUnavailable, "draining", "the server is shutting down"));
  control_.call(std::move(call), std::move(done));
}

Result<const pipeline::ServedModel*> InferService::resolve(std::string_view model,
                                                           std::string_view version) const {
  const pipeline::ServedModel* found = nullptr;
  if (model.empty()) {
    const auto all = host_.pipeline.models();
    if (all.size() != 1) {
      return Status(
          Code::kInvalidArgument, "model_not_named",
          fmt::format("{} models are served; name one in the path /v2/models/NAME/infer", all.size()));
    }
    found = all.front();
  } else {
    found = host_.pipeline.find(model);
  }
  if (const auto broken = broken_.find(model); found == nullptr && broken != broken_.end()) {
    return Status(Code::kUnavailable, "not_ready",
                  fmt::format("failed to load '{}': {}", model, broken->second.detail()));
  }
  if (found == nullptr || (!version.empty() && version != found->spec->version)) {
    const std::string_view which = found == nullptr ? "is not found" : "has no such version";
    return Status(Code::kNotFound, "unknown_model",
                  fmt::format("Request for unknown model: '{}'{}{} {}", model,
                              version.empty() ? "" : " version ", version, which));
  }
  return found;
}

CallId InferService::infer(InferCall body, Completion<Reply> done) {
  auto call = std::make_shared<Call>();
  call->dialect = body.dialect;
  call->done = std::move(done);
  call->arrived = host_.loop.now();
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(calls_.size()));
    calls_.emplace_back();
    generations_.push_back(0);
  }
  call->id = {free_.back(), generations_[free_.back()], true};
  free_.pop_back();
  calls_[call->id.index] = call;
  const CallId id = call->id;
  if (Status refused = begin(call, std::move(body)); !refused.is_ok()) close(*call, std::move(refused));
  return id;
}

Status InferService::begin(std::shared_ptr<Call> call, InferCall body) {
  TONNAGE_ASSIGN(const pipeline::ServedModel* model, resolve(body.model, body.version));
  if (!model->accepts()) return {Code::kUnavailable, "not_ready", model->why_not_ready()};
  call->spec = model->spec;
  call->envelope = std::move(body.ingress);
  TONNAGE_TRY(call->envelope.transfer(envelopes_));

  std::optional<std::size_t> json_length;
  if (call->dialect == Dialect::kV2 && body.json_length_header) {
    TONNAGE_ASSIGN(json_length, codec::v2::parse_json_length(*body.json_length_header, body.body.size()));
  }
  const Bytes needed = decoding_bytes(body.body.size(), json_length);
  TONNAGE_TRY(call->envelope.grow_to(std::max(call->envelope.amount(), needed)));
  if (call->dialect == Dialect::kV2) {
    TONNAGE_ASSIGN(call->decoded, codec::v2::decode_infer(*call->spec, body.body, json_length));
  } else {
    TONNAGE_ASSIGN(call->decoded, codec::sagemaker::decode_invocation(*call->spec, body.body,
                                                                      body.content_type, body.accept));
  }
  call->decoded.request.model = call->spec;
  if (call->decoded.texts.empty()) {
    submit(call);
  } else {
    tokenise(std::move(call));
  }
  return Status::ok();
}

Duration InferService::deadline_of(const Call& call) const {
  Duration deadline = call.dialect == Dialect::kV2 ? options_.v2_deadline : options_.sagemaker_deadline;
  if (call.spec->deadline > Duration{}) deadline = std::min(deadline, call.spec->deadline);
  if (call.decoded.timeout) deadline = std::min(deadline, *call.decoded.timeout);
  return deadline;
}

void InferService::tokenise(std::shared_ptr<Call> call) {
  const auto tokenizer = tokenizers_.find(call->spec->name);
  if (tokenizer == tokenizers_.end()) {
    return close(*call, internal("no_tokenizer", "the model takes text, but its tokenizer was not loaded"));
  }
  const Bytes needed = tokenising_bytes(*call->spec, call->decoded.texts);
  if (Status room = call->envelope.grow_to(std::max(call->envelope.amount(), needed)); !room.is_ok()) {
    return close(*call, std::move(room));
  }
  text::TextJob job{tokenizer->second, std::move(call->decoded.texts), text::length_rule(*call->spec)};
  std::size_t bytes = 0;
  for (const std::string& text : job.texts) bytes += text.size();
  if (bytes > kInPlaceTextBytes) {
    call->left_pool_job = std::make_shared<std::atomic<bool>>(false);
    job.cancelled = call->left_pool_job;
    call->deadline = host_.loop.call_at(call->arrived + deadline_of(*call), [this, call] {
      close(*call, Status(Code::kDeadlineExceeded, "deadline", "not answered within its deadline"));
    });
    return host_.pool.submit(std::move(job), Completion<std::vector<text::Tokens>>([this, call](auto tokens) {
                               tokenised(call, std::move(tokens));
                             }));
  }
  tokenised(call, text::encode_all(job));
}

void InferService::tokenised(const std::shared_ptr<Call>& call, Result<std::vector<text::Tokens>> tokens) {
  call->left_pool_job = nullptr;
  call->deadline.reset();
  if (!call->done.is_open()) return call->envelope.release();  // cancelled or expired meanwhile
  if (!tokens.is_ok()) return close(*call, tokens.status());
  Status filled = fill_text_rows(*call->spec, *tokens, call->decoded.request);
  if (filled.is_ok()) filled = codec::check_row_count(*call->spec, call->decoded.request.rows);
  if (!filled.is_ok()) return close(*call, std::move(filled));
  submit(call);
}

void InferService::submit(const std::shared_ptr<Call>& call) {
  request::Request& request = call->decoded.request;
  const Bytes needed = envelope_bytes(request);
  if (Status room = call->envelope.grow_to(std::max(call->envelope.amount(), needed)); !room.is_ok()) {
    return close(*call, std::move(room));
  }
  call->envelope.shrink_to(needed);
  call->shell.model = call->spec;
  call->shell.id = request.id;
  call->shell.rows = request.client_rows();
  call->shell.length = request.length;
  request.arrived = call->arrived;
  request.deadline = call->arrived + deadline_of(*call);
  request.envelope = std::move(call->envelope);
  request.completion =
      Completion<request::Answer>([this, call](auto answer) { answered(call, std::move(answer)); });
  const request::RequestId id = host_.pipeline.submit(std::move(request));
  call->request = id;
  call->is_submitted = true;
}

void InferService::answered(const std::shared_ptr<Call>& call, Result<request::Answer> answer) {
  if (!answer.is_ok()) return close(*call, answer.status());
  auto encoded =
      call->dialect == Dialect::kV2
          ? codec::v2::encode_infer(*call->spec, call->shell, *answer, call->decoded.format)
          : codec::sagemaker::encode_invocation(*call->spec, call->shell, *answer, call->decoded.format);
  if (!encoded.is_ok()) return close(*call, encoded.status());
  Reply reply;
  reply.content_type = std::move(encoded->content_type);
  reply.body = std::move(encoded->body);
  if (encoded->json_length) {
    reply.headers.emplace_back("Inference-Header-Content-Length", std::to_string(*encoded->json_length));
  }
  if (answer->truncated_rows > 0) {
    request_metrics_.truncated(*call->spec, answer->truncated_rows);
    reply.headers.emplace_back("X-Tonnage-Truncated-Rows", std::to_string(answer->truncated_rows));
  }
  if (answer->chunked_rows > 0) {
    request_metrics_.chunked(*call->spec, answer->chunked_rows);
    reply.headers.emplace_back("X-Tonnage-Chunked-Rows", std::to_string(answer->chunked_rows));
  }
  if (!answer->fallback_model.empty()) {
    reply.headers.emplace_back("X-Tonnage-Fallback-Model", answer->fallback_model);
  }
  reply.envelope = std::move(answer->envelope);
  close(*call, std::move(reply));
}

void InferService::close(Call& call, Result<Reply> reply) {
  // The table's reference may be the last one.
  const std::shared_ptr<Call> keep = std::exchange(calls_[call.id.index], nullptr);
  if (keep == nullptr) return;
  ++generations_[call.id.index];
  free_.push_back(call.id.index);
  request_metrics_.count(call.spec.get(), reply.status(), host_.loop.now() - call.arrived, call.shell.rows);
  if (call.left_pool_job) {
    call.left_pool_job->store(true, std::memory_order_relaxed);
  } else {
    call.envelope.release();
  }
  if (call.done.is_open()) call.done.answer(std::move(reply));
}

void InferService::cancel(CallId id) {
  if (!id.is_valid || id.index >= calls_.size() || generations_[id.index] != id.generation) return;
  const std::shared_ptr<Call> call = calls_[id.index];
  if (call == nullptr) return;
  if (call->is_submitted) return host_.pipeline.cancel(call->request);
  close(*call, Status(Code::kCancelled, "cancelled", "the client left"));
}

bool InferService::is_ready() const {
  if (draining_ || !broken_.empty()) return false;
  const auto all = host_.pipeline.models();
  if (all.empty()) return options_.model_control;
  return std::ranges::all_of(
      all, [&](const auto* model) { return host_.pipeline.is_ready(*model) || !is_expected(*model); });
}

// What comes or goes by call is nothing that the server's readiness waits for.
bool InferService::is_expected(const pipeline::ServedModel& model) const {
  return !model.is_leaving && !control_.is_loading(model.spec->name);
}

std::string InferService::not_ready_why() const {
  if (draining_) return "the server is shutting down";
  std::string why;
  for (const auto& [name, status] : broken_)
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", name, status.detail());
  for (const pipeline::ServedModel* model : host_.pipeline.models()) {
    if (host_.pipeline.is_ready(*model) || !is_expected(*model)) continue;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", model->spec->name, model->why_not_ready());
  }
  return why.empty() && host_.pipeline.models().empty() ? "no model is served" : why;
}

Status InferService::model_ready(std::string_view model, std::string_view version) const {
  TONNAGE_ASSIGN(const pipeline::ServedModel* found, resolve(model, version));
  if (host_.pipeline.is_ready(*found)) return Status::ok();
  return {Code::kUnavailable, "not_ready", found->why_not_ready()};
}

std::string InferService::server_metadata() const {
  return codec::v2::server_metadata(options_.server_name, options_.model_control);
}

Result<std::string> InferService::model_metadata(std::string_view model, std::string_view version) const {
  TONNAGE_ASSIGN(const pipeline::ServedModel* found, resolve(model, version));
  return codec::v2::model_metadata(*found->spec);
}

std::vector<std::string> InferService::model_names() const {
  std::vector<std::string> names;
  for (const pipeline::ServedModel* model : host_.pipeline.models()) names.push_back(model->spec->name);
  return names;
}

std::string InferService::status_json() const {
  return api::status_json(host_.budget.root(), host_.pipeline, is_ready());
}

std::string InferService::metrics_text() const {
  publish(host_.budget.root(), host_.pipeline, host_.metrics);
  return host_.metrics.prometheus_text();
}

}  // namespace tonnage::api
