// SPDX-License-Identifier: Apache-2.0
// InferService: the Service of a real server, over pipeline, codec and text.
//
// Promises: those of api/service.h. The envelope of a request is taken before its body is decoded and
// before anything waits; later steps only shrink it. Short texts are tokenised in place, longer ones in
// the pool.
// Threads: the loop. Owns: the tokenizers and the calls in progress.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/model_control.h"
#include "api/model_metrics.h"
#include "api/service.h"
#include "codec/decoded.h"
#include "pipeline/pipeline.h"
#include "telemetry/metrics.h"
#include "text/pool.h"

namespace tonnage::api {

struct ServiceOptions {
  std::string server_name = "tonnage";
  Bytes max_body = mib(64);
  Bytes ingress_limit = mib(32);
  Duration v2_deadline = seconds(60);
  Duration sagemaker_deadline = seconds(55);
  Duration unload_drain = seconds(25);  // for what an unloaded model has taken
  bool model_control = false;           // models come and go by call: it is ready without any, too
};

class InferService final : public Service {
 public:
  struct Host {
    Loop& loop;
    pipeline::Pipeline& pipeline;
    text::Pool& pool;
    memory::Budget& budget;
    telemetry::Registry& metrics;
    std::function<Result<std::vector<model::RepositoryEntry>>()> scan;  // the repository, for calls
  };

  InferService(ServiceOptions options, Host host);
  ~InferService() override;

  // Before the first request of the model. Error: bad_vocabulary, bad_config.
  Status add_tokenizer(const model::ModelSpec& spec);
  // A model of the repository that could not even be read: the server is not ready because of it.
  void add_broken(const std::string& name, Status why) { broken_.insert_or_assign(name, std::move(why)); }
  // Readiness is false from now on, whatever the models say.
  void drain() { draining_ = true; }

  memory::Account& ingress() override { return ingress_; }
  Bytes max_body() const override { return options_.max_body; }
  CallId infer(InferCall call, Completion<Reply> done) override;
  void cancel(CallId call) override;
  void administer(AdminCall call, Completion<Reply> done) override;
  bool is_draining() const override { return draining_; }
  bool is_ready() const override;
  std::string not_ready_why() const override;
  Status model_ready(std::string_view model, std::string_view version) const override;
  std::string server_metadata() const override;
  Result<std::string> model_metadata(std::string_view model, std::string_view version) const override;
  std::vector<std::string> model_names() const override;
  std::string status_json() const override;
  std::string metrics_text() const override;

 private:
  // A call between infer() and its answer.
  struct Call;

  Result<ModelControl::Tokenizer> make_tokenizer(const model::ModelSpec& spec) const;
  ModelControl::Host control_host();
  bool is_expected(const pipeline::ServedModel& model) const;
  Result<const pipeline::ServedModel*> resolve(std::string_view model, std::string_view version) const;
  Status begin(std::shared_ptr<Call> call, InferCall body);
  Duration deadline_of(const Call& call) const;
  void tokenise(std::shared_ptr<Call> call);
  void tokenised(const std::shared_ptr<Call>& call, Result<std::vector<text::Tokens>> tokens);
  void submit(const std::shared_ptr<Call>& call);
  void answered(const std::shared_ptr<Call>& call, Result<request::Answer> answer);
  void close(Call& call, Result<Reply> reply);

  ServiceOptions options_;
  Host host_;
  memory::Account& ingress_;
  memory::Account& envelopes_;
  RequestMetrics request_metrics_;
  std::map<std::string, std::shared_ptr<const text::Tokenizer>, std::less<>> tokenizers_;
  std::map<std::string, Status, std::less<>> broken_;
  bool draining_ = false;
  std::vector<std::shared_ptr<Call>> calls_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint32_t> free_;
  ModelControl control_;
};

}  // namespace tonnage::api
