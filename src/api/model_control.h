// SPDX-License-Identifier: Apache-2.0
// ModelControl: models that come and go by call: Triton's repository calls, and three of ours: rotate
// replaces a model's workers, observe and enforce say whether predictions refuse.
//
// Promises:
//  1. Names are looked up among what the repository holds; no path is ever built from one.
//  2. load is answered when the model is ready, or with the reason why it is not; then nothing of it is
//     left. It waits half a minute for memory that another one gives back, and as long as it takes for what
//     is on its way. A model that is loaded already is read again: what cannot be read leaves it as it was,
//     then it is drained and replaced.
//  3. unload is answered at once; what the model took is finished, within the drain time.
// Threads: the loop. Fails with: not_found/unknown_model, invalid_argument/load_failed,
// unavailable/over_budget, already_exists/already_loading, unimplemented/model_override.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/service.h"
#include "base/loop.h"
#include "model/model_toml.h"
#include "pipeline/pipeline.h"
#include "text/tokenizer.h"

namespace tonnage::api {

class ModelControl {
 public:
  using Tokenizer = std::shared_ptr<const text::Tokenizer>;

  struct Host {
    Loop& loop;
    pipeline::Pipeline& pipeline;
    // What the repository holds now.
    std::function<Result<std::vector<model::RepositoryEntry>>()> scan;
    // Null for a model that takes no text.
    std::function<Result<Tokenizer>(const model::ModelSpec&)> make_tokenizer;
    std::function<void(const std::string&, Tokenizer)> arrives;  // before its first request
    std::function<void(const std::string&)> is_gone;
  };

  ModelControl(Host host, Duration drain) : host_(std::move(host)), drain_(drain) {}
  ~ModelControl();
  ModelControl(const ModelControl&) = delete;
  ModelControl& operator=(const ModelControl&) = delete;

  void call(AdminCall call, Completion<Reply> done);
  // Of the pipeline: a model may have become ready, or shown why it does not.
  void model_changed();
  // Its load was asked for by call and is not over: the server's readiness does not wait for it.
  bool is_loading(std::string_view name) const { return loads_.contains(name); }

 private:
  struct Load {
    model::ModelSpec spec;
    Tokenizer tokenizer;
    Completion<Reply> done;
    bool is_added = false;
    Loop::Timer patience;
    bool waits_for_memory = true;  // until its patience is over
  };

  Result<Reply> index(bool only_ready) const;
  void load(const std::string& name, Completion<Reply> done);
  void add(const std::string& name);
  void fail(const std::string& name, const Status& why);
  void unload(const std::string& name, Completion<Reply> done);
  Result<Reply> set_enforce(const std::string& name, model::Enforce enforce);
  void rotate(const std::string& name, Completion<Reply> done);
  void remove(const std::string& name, Duration drain);
  Result<model::ModelSpec> find(const std::string& name) const;

  Host host_;
  Duration drain_;
  std::map<std::string, Load, std::less<>> loads_;
  std::map<std::string, std::string, std::less<>> reasons_;  // why a model is not loaded
};

}  // namespace tonnage::api
