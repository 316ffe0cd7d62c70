// SPDX-License-Identifier: Apache-2.0
// Service: what the server can do, without any transport. Front ends (http, grpc) translate to it.
//
// Promises:
//  1. infer() answers its completion exactly once, on the loop, never inside the call itself… except
//     that refusals known at once may be answered inside the call.
//  2. cancel() frees the request's rows and envelope at once; its completion is answered `cancelled`.
//  3. live, ready and metadata never wait for work.
// Threads: the loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/completion.h"
#include "base/status.h"
#include "base/time.h"
#include "memory/budget.h"

namespace tonnage::api {

enum class Dialect : std::uint8_t { kV2, kSageMaker };

struct InferCall {
  Dialect dialect = Dialect::kV2;
  std::string model;    // empty: the only (or default) model
  std::string version;  // empty: the highest ready
  std::string content_type;
  std::string accept;
  std::optional<std::string> json_length_header;  // Inference-Header-Content-Length as sent
  std::string body;                               // capacity ≥ size + 64
  memory::Charge ingress;                         // covers the body; becomes the envelope
};

struct Reply {
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  memory::Charge envelope;  // given back by whoever holds the Reply, after the last byte
};

struct CallId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  bool is_valid = false;
};

// What an operator may ask for; who is one is decided by the front end.
enum class AdminKind : std::uint8_t { kIndex, kLoad, kUnload, kRotate, kEnforce, kObserve };

struct AdminCall {
  AdminKind kind = AdminKind::kIndex;
  std::string model;
  std::string body;
  memory::Charge ingress;  // covers the body
};

class Service {
 public:
  virtual ~Service() = default;

  // Where front ends charge bodies, chunk by chunk, before reading them.
  virtual memory::Account& ingress() = 0;
  // Bound on one body. Larger: too_large/body.
  virtual Bytes max_body() const = 0;

  virtual CallId infer(InferCall call, Completion<Reply> done) = 0;
  virtual void cancel(CallId call) = 0;
  // Answered once, on the loop, possibly inside the call. It goes on where the caller leaves.
  virtual void administer(AdminCall call, Completion<Reply> done) = 0;
  // New calls are refused from now on (unavailable/draining); what was begun is finished.
  virtual bool is_draining() const = 0;

  virtual bool is_ready() const = 0;  // every required model is ready
  virtual std::string not_ready_why() const = 0;
  // not_found/unknown_model, unavailable/not_ready.
  virtual Status model_ready(std::string_view model, std::string_view version) const = 0;
  virtual std::string server_metadata() const = 0;
  virtual Result<std::string> model_metadata(std::string_view model, std::string_view version) const = 0;
  virtual std::vector<std::string> model_names() const = 0;
  // The state of ledger, workers, lanes and cost models as JSON (GET /v1/tonnage/status; `tonnage top`).
  virtual std::string status_json() const = 0;
  virtual std::string metrics_text() const = 0;
};

}  // namespace tonnage::api
