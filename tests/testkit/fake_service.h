// SPDX-License-Identifier: Apache-2.0
// FakeService: an api::Service that keeps calls until the test answers them (or echoes at once).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/service.h"

namespace tonnage::testkit {

class FakeService final : public api::Service {
 public:
  struct Call {
    api::InferCall call;
    Completion<api::Reply> done;
  };

  explicit FakeService(memory::Account& ingress) : ingress_(ingress) {}

  memory::Account& ingress() override { return ingress_; }
  Bytes max_body() const override { return max_body_size; }

  api::CallId infer(api::InferCall call, Completion<api::Reply> done) override {
    ++infer_calls;
    if (echoes) {
      done.answer(reply_to(call));
      return {};
    }
    const std::uint32_t index = next_++;
    waiting.emplace(index, Call{std::move(call), std::move(done)});
    return {index, 1, true};
  }
  void cancel(api::CallId id) override {
    ++cancel_calls;
    const auto found = waiting.find(id.index);
    if (found == waiting.end()) return;
    Call call = std::move(found->second);
    waiting.erase(found);
    call.call.ingress.release();
    call.done.answer(Status(Code::kCancelled, "cancelled", "the client left"));
  }

  // Echoes kind, model and body.
  void administer(api::AdminCall call, Completion<api::Reply> done) override {
    ++admin_calls;
    api::Reply reply;
    reply.content_type = "text/plain";
    reply.body = std::to_string(static_cast<int>(call.kind)) + " " + call.model + " " + call.body;
    call.ingress.release();
    done.answer(std::move(reply));
  }
  bool is_draining() const override { return draining; }

  bool is_ready() const override { return ready; }
  std::string not_ready_why() const override { return "loading"; }
  Status model_ready(std::string_view model, std::string_view) const override {
    if (model == "known") return Status::ok();
    if (model == "loading") return {Code::kUnavailable, "not_ready", "still loading"};
    return {Code::kNotFound, "unknown_model", "no such model"};
  }
  std::string server_metadata() const override { return R"({"name":"tonnage"})"; }
  Result<std::string> model_metadata(std::string_view model, std::string_view version) const override {
    if (model != "known" && model != "a/b c")
      return Status(Code::kNotFound, "unknown_model", "no such model");
    return R"({"name":")" + std::string(model) + R"(","version":")" + std::string(version) + "\"}";
  }
  std::vector<std::string> model_names() const override { return {"known", "loading"}; }
  std::string status_json() const override { return R"({"status":1})"; }
  std::string metrics_text() const override { return "up 1\n"; }

  // The reply holds the body; its envelope is the charge of the request.
  static api::Reply reply_to(api::InferCall& call) {
    api::Reply reply;
    reply.content_type = call.content_type.empty() ? "application/octet-stream" : call.content_type;
    reply.headers.emplace_back("X-Model", call.model);
    reply.body = call.body;
    reply.envelope = std::move(call.ingress);
    return reply;
  }
  // Answers the oldest waiting call with its own body.
  void answer_oldest() {
    Call call = take_oldest();
    call.done.answer(reply_to(call.call));
  }
  void fail_oldest(Status status) {
    Call call = take_oldest();
    call.call.ingress.release();
    call.done.answer(std::move(status));
  }

  bool echoes = true;
  bool ready = true;
  bool draining = false;
  int admin_calls = 0;
  Bytes max_body_size = mib(1);
  int infer_calls = 0;
  int cancel_calls = 0;
  std::map<std::uint32_t, Call> waiting;

 private:
  Call take_oldest() {
    TONNAGE_CHECK(!waiting.empty(), "no call is waiting");
    Call call = std::move(waiting.begin()->second);
    waiting.erase(waiting.begin());
    return call;
  }

  memory::Account& ingress_;
  std::uint32_t next_ = 0;
};

}  // namespace tonnage::testkit
