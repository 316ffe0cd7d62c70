// SPDX-License-Identifier: Apache-2.0
#include "api/model_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/json_text.h"
#include "codec/json/reader.h"

namespace tonnage::api {
namespace {

// A model that needs memory which another one is about to give back waits for it this long.
constexpr Duration kMemoryPatience = seconds(30);

Reply json(std::string body) { return {"application/json", {}, std::move(body), {}}; }

Status unknown(const std::string& name) {
  return {Code::kNotFound, "unknown_model",
          fmt::format("failed to load '{}': the repository holds no such model", name)};
}

// What a body may say. `ready`: of an index call.
struct Body {
  bool ready = false;
  bool has_override = false;
};

Result<Body> parse_body(std::string_view text) {
  Body body;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return body;
  codec::JsonReader reader(text);
  std::string_view key;
  reader.enter_object();
  while (reader.next_key(key)) {
    if (key == "ready") {
      reader.read_bool(body.ready);
    } else if (key == "parameters") {
      reader.enter_object();
      while (reader.next_key(key)) {
        body.has_override |= key == "config" || key.starts_with("file:");
        reader.skip_value();
      }
    } else {
      reader.skip_value();
    }
  }
  reader.finish();
  if (!reader.is_ok()) return reader.status();
  return body;
}

bool has_failed(const pipeline::ServedModel& model, bool waits_for_memory) {
  if (model.trouble.is_ok() || model.warms_up_again()) return false;
  return model.trouble.reason() != "over_budget" || !waits_for_memory;
}

struct IndexEntry {
  std::string version;
  std::string_view state = "UNAVAILABLE";
  std::string reason;
};

// READY is what …/models/NAME/ready says: requests are answered, if need be by the fallback.
IndexEntry entry_of(const pipeline::ServedModel& model, bool is_ready) {
  if (model.is_leaving) return {model.spec->version, "UNLOADING", ""};
  if (is_ready) {
    return {model.spec->version, "READY",
            model.ladder.is_resting() ? "its fallback answers: " + model.why_not_ready() : ""};
  }
  if (model.is_coming()) return {model.spec->version, "LOADING", ""};
  return {model.spec->version, "UNAVAILABLE", model.why_not_ready()};
}

std::string index_json(const std::map<std::string, IndexEntry>& entries, bool only_ready) {
  std::string out = "[";
  for (const auto& [name, entry] : entries) {
    if (only_ready && entry.state != "READY") continue;
    fmt::format_to(std::back_inserter(out), R"({}{{"name":{})", out.size() > 1 ? "," : "", json_string(name));
    if (!entry.version.empty()) out += ",\"version\":" + json_string(entry.version);
    fmt::format_to(std::back_inserter(out), R"(,"state":"{}")", entry.state);
    if (!entry.reason.empty()) out += ",\"reason\":" + json_string(entry.reason);
    out += '}';
  }
  return out + ']';
}

}  // namespace

ModelControl::~ModelControl() {
  for (auto& [name, load] : loads_) {
    load.done.answer(Status(Code::kUnavailable, "draining", "the server is shutting down"));
  }
}

void ModelControl::call(AdminCall call, Completion<Reply> done) {
  const Result<Body> body = parse_body(call.body);
  call.ingress.release();
  if (!body.is_ok()) return done.answer(body.status());
  if (body->has_override) {
    return done.answer(Status(Code::kUnimplemented, "model_override",
                              "a model is loaded as the repository has it: 'config' and 'file:' parameters "
                              "are not taken; change its model.toml"));
  }
  switch (call.kind) {
    case AdminKind::kIndex: return done.answer(index(body->ready));
    case AdminKind::kLoad: return load(call.model, std::move(done));
    case AdminKind::kUnload: return unload(call.model, std::move(done));
    case AdminKind::kRotate: return rotate(call.model, std::move(done));
    case AdminKind::kEnforce: return done.answer(set_enforce(call.model, model::Enforce::kOn));
    case AdminKind::kObserve: return done.answer(set_enforce(call.model, model::Enforce::kObserve));
  }
}

Result<Reply> ModelControl::index(bool only_ready) const {
  TONNAGE_ASSIGN(const std::vector<model::RepositoryEntry> held, host_.scan());
  std::map<std::string, IndexEntry> entries;
  for (const model::RepositoryEntry& entry : held) {
    IndexEntry& row = entries[entry.name()];
    const auto reason = reasons_.find(entry.name());
    row.reason = reason == reasons_.end() ? "not loaded" : reason->second;
    if (!entry.spec.is_ok()) {
      row.reason = entry.spec.status().detail();
    } else {
      row.version = entry.spec->version;
    }
  }
  for (const pipeline::ServedModel* model : host_.pipeline.models()) {
    entries[model->spec->name] = entry_of(*model, host_.pipeline.is_ready(*model));
  }
  return json(index_json(entries, only_ready));
}

Result<model::ModelSpec> ModelControl::find(const std::string& name) const {
  TONNAGE_ASSIGN(std::vector<model::RepositoryEntry> held, host_.scan());
  const auto found = std::ranges::find(held, name, &model::RepositoryEntry::name);
  if (found == held.end()) return unknown(name);
  if (found->spec.is_ok()) return std::move(found->spec);
  return invalid("load_failed", fmt::format("failed to load '{}': {}", name, found->spec.status().detail()));
}

void ModelControl::load(const std::string& name, Completion<Reply> done) {
  if (loads_.contains(name)) {
    return done.answer(
        Status(Code::kAlreadyExists, "already_loading", fmt::format("'{}' is being loaded already", name)));
  }
  Result<model::ModelSpec> spec = find(name);
  if (!spec.is_ok()) return done.answer(spec.status());
  Result<Tokenizer> tokenizer = host_.make_tokenizer(*spec);
  if (!tokenizer.is_ok()) {
    return done.answer(
        invalid("load_failed", fmt::format("failed to load '{}': {}", name, tokenizer.status().detail())));
  }
  Load& load = loads_[name];
  load.spec = std::move(spec).value();
  load.tokenizer = std::move(tokenizer).value();
  load.done = std::move(done);
  if (host_.pipeline.find(name) == nullptr) return add(name);
  remove(name, drain_);
}

void ModelControl::add(const std::string& name) {
  const auto found = loads_.find(name);
  if (found == loads_.end() || found->second.is_added) return;  // nobody waits for it to come back
  Load& load = found->second;
  host_.arrives(name, std::move(load.tokenizer));
  reasons_.erase(name);
  load.is_added = true;
  const Status added = host_.pipeline.add_model(std::move(load.spec));
  if (!added.is_ok()) return fail(name, added);
  load.patience = host_.loop.call_after(kMemoryPatience, [this, name] {
    loads_.find(name)->second.waits_for_memory = false;  // the timer goes with it
    model_changed();
  });
  model_changed();
}

void ModelControl::model_changed() {
  std::vector<std::string> names;
  for (const auto& [name, load] : loads_) {
    if (load.is_added) names.push_back(name);
  }
  for (const std::string& name : names) {
    const pipeline::ServedModel* model = host_.pipeline.find(name);
    const auto found = loads_.find(name);
    if (model == nullptr || found == loads_.end()) continue;
    if (host_.pipeline.is_ready(*model)) {
      Completion<Reply> done = std::move(found->second.done);
      loads_.erase(found);
      done.answer(json(fmt::format(R"({{"name":{},"load":true}})", json_string(name))));
    } else if (has_failed(*model, found->second.waits_for_memory)) {
      fail(name, model->trouble);
    }
  }
}

void ModelControl::fail(const std::string& name, const Status& why) {
  auto node = loads_.extract(name);
  if (node.empty()) return;
  const std::string detail = fmt::format("failed to load '{}': {}", name, why.detail());
  reasons_[name] = why.detail();
  const bool is_memory = why.reason() == "over_budget";
  remove(name, Duration{});
  node.mapped().done.answer(is_memory ? Status(Code::kUnavailable, "over_budget", detail)
                                      : invalid("load_failed", detail));
}

// When it is gone, a load that waits for it goes on. Once, however many calls made it leave.
void ModelControl::remove(const std::string& name, Duration drain) {
  const pipeline::ServedModel* model = host_.pipeline.find(name);
  if (model == nullptr) return host_.is_gone(name);
  UniqueFunction<void()> gone;
  if (!model->is_leaving) {
    gone = [this, name] {
      host_.is_gone(name);
      add(name);
    };
  }
  (void)host_.pipeline.remove_model(name, drain, std::move(gone));  // it is there
}

void ModelControl::unload(const std::string& name, Completion<Reply> done) {
  if (host_.pipeline.find(name) != nullptr) {
    reasons_[name] = "unloaded";
    remove(name, drain_);
  } else if (!loads_.contains(name)) {
    // Known and not loaded is what was asked for.
    if (const Result<model::ModelSpec> held = find(name); held.status().code() == Code::kNotFound) {
      return done.answer(
          Status(Code::kNotFound, "unknown_model", fmt::format("Request for unknown model: '{}'", name)));
    }
    host_.is_gone(name);
  }
  if (auto node = loads_.extract(name); !node.empty()) {
    node.mapped().done.answer(
        Status(Code::kUnavailable, "unloading", fmt::format("'{}' was unloaded while it was loading", name)));
  }
  done.answer(json(fmt::format(R"({{"name":{},"unload":true}})", json_string(name))));
}

Result<Reply> ModelControl::set_enforce(const std::string& name, model::Enforce enforce) {
  TONNAGE_TRY(host_.pipeline.set_enforce(name, enforce));
  return json(
      fmt::format(R"({{"name":{},"enforce":"{}"}})", json_string(name), model::enforce_name(enforce)));
}

void ModelControl::rotate(const std::string& name, Completion<Reply> done) {
  host_.pipeline.rotate(
      name, Completion<pipeline::RotationReport>([name, done = std::move(done)](
                                                     Result<pipeline::RotationReport> report) mutable {
        if (!report.is_ok()) return done.answer(report.status());
        done.answer(json(fmt::format(R"({{"name":{},"workers":{},"given_back_bytes":{}}})", json_string(name),
                                     report->workers, report->given_back.count())));
      }));
}

}  // namespace tonnage::api
