// SPDX-License-Identifier: Apache-2.0
#include "http/detail/routes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"

namespace tonnage::http {
namespace {

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return lower(x) == lower(y);
  });
}

// Which endpoints this listener has.
bool is_served(Endpoint endpoint, const HttpOptions& options) {
  switch (endpoint) {
    case Endpoint::kUnknown: return false;
    case Endpoint::kPing:
    case Endpoint::kInvocations: return options.sagemaker;
    case Endpoint::kMetrics: return options.metrics;
    default: return options.v2;
  }
}

bool method_fits(Method method, Endpoint endpoint) {
  if (takes_body(endpoint)) return method == Method::kPost;
  return method == Method::kGet || method == Method::kHead;
}

std::optional<OutgoingReply> refuse_encoding(const RequestHead& head) {
  if (!head.transfer_encoding.empty() && !equals_ignoring_case(head.transfer_encoding, "chunked")) {
    return error_reply(501, "unsupported_transfer_encoding",
                       "the only transfer encoding known here is chunked");
  }
  if (head.chunked && head.version == 10) {
    return error_reply(400, "bad_http", "HTTP/1.0 has no chunked transfer encoding");
  }
  if (!head.expect.empty() && !equals_ignoring_case(head.expect, "100-continue")) {
    return error_reply(417, "unsupported_expectation", "the only expectation known here is 100-continue");
  }
  if (!head.content_encoding.empty() && !equals_ignoring_case(head.content_encoding, "identity")) {
    OutgoingReply reply = error_reply(
        415, "unsupported_content_encoding",
        fmt::format("content encoding '{}' is not supported; send the body as it is", head.content_encoding));
    reply.headers.emplace_back("Accept-Encoding", "identity");
    return reply;
  }
  return std::nullopt;
}

bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;  // all of it is looked at: time tells nothing about the token
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

std::optional<OutgoingReply> refuse_admin(const RequestHead& head, const HttpOptions& options) {
  if (!options.admin) {
    return error_reply(403, "model_control_off",
                       "models come and go by call only where the server runs with --model-control explicit");
  }
  if (!options.admin_token.empty() && are_equal(head.authorization, "Bearer " + options.admin_token))
    return std::nullopt;
  if (head.peer_is_loopback && !head.for_another) return std::nullopt;
  return error_reply(403, "not_an_operator",
                     "this call is taken from this machine itself, not through a proxy or a browser, or with "
                     "the token of --admin-token-file (Authorization: Bearer …)");
}

std::string names_json(const std::vector<std::string>& names) {
  std::string out = "{\"models\":[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, names[i]);
  }
  return out + "]}";
}

OutgoingReply readiness(const api::Service& service) {
  if (service.is_ready()) return json_reply(200, "{\"ready\":true}");
  // 400 as Triton does; the body keeps the key that KServe's client reads.
  std::string body = "{\"ready\":false,\"error\":";
  append_json_string(body, service.not_ready_why());
  OutgoingReply reply = json_reply(400, body + "}");
  reply.headers.emplace_back("X-Tonnage-Reason", "not_ready");
  return reply;
}

OutgoingReply ping(const api::Service& service) {
  OutgoingReply reply;
  if (service.is_ready()) return reply;
  reply.status = 503;
  reply.headers.emplace_back("X-Tonnage-Reason", "not_ready");
  return reply;
}

OutgoingReply model_ready(const Target& target, const HttpOptions& options, const api::Service& service) {
  const Status status = service.model_ready(target.model, target.version);
  std::string body = "{\"name\":";
  append_json_string(body, target.model);
  if (status.is_ok()) return json_reply(200, body + ",\"ready\":true}");
  OutgoingReply reply = error_reply(status, options.overload_status);
  if (status.code() == Code::kUnavailable) {
    reply.status = 400;
    body += ",\"ready\":false,\"error\":";
    append_json_string(body, status.detail());
    reply.body = body + "}";
  }
  return reply;
}

}  // namespace

Status check_body_size(std::uint64_t bytes, api::Service& service) {
  const Bytes allowed = std::min(service.max_body(), service.ingress().limit());
  if (bytes <= allowed.count()) return Status::ok();
  return {Code::kTooLarge, "body",
          fmt::format("the body has {} bytes; at most {} are taken", bytes, allowed.count())};
}

std::optional<OutgoingReply> refuse_early(const RequestHead& head, const Target& target,
                                          const HttpOptions& options, api::Service& service) {
  if (auto refused = refuse_encoding(head)) return refused;
  if (!is_served(target.endpoint, options)) {
    return error_reply(404, "unknown_path",
                       fmt::format("nothing is served at '{}' on this port", target.path));
  }
  if (!method_fits(head.method, target.endpoint)) {
    OutgoingReply reply =
        error_reply(405, "method_not_allowed",
                    fmt::format("'{}' takes {}", target.path, allowed_methods(target.endpoint)));
    reply.headers.emplace_back("Allow", allowed_methods(target.endpoint));
    return reply;
  }
  if (target.endpoint == Endpoint::kAdmin) {
    if (auto refused = refuse_admin(head, options)) return refused;
  }
  if (takes_body(target.endpoint)) {
    if (service.is_draining()) {
      return error_reply(Status(Code::kUnavailable, "draining", "the server is shutting down"),
                         options.overload_status);
    }
    const Status size = check_body_size(head.content_length.value_or(0), service);
    if (!size.is_ok()) return error_reply(size, options.overload_status);
  }
  return std::nullopt;
}

OutgoingReply answer_now(const Target& target, const HttpOptions& options, const api::Service& service) {
  switch (target.endpoint) {
    case Endpoint::kServerMetadata: return json_reply(200, service.server_metadata());
    case Endpoint::kLive: return json_reply(200, "{\"live\":true}");
    case Endpoint::kReady: return readiness(service);
    case Endpoint::kModels: return json_reply(200, names_json(service.model_names()));
    case Endpoint::kModelReady: return model_ready(target, options, service);
    case Endpoint::kStatus: return json_reply(200, service.status_json());
    case Endpoint::kPing: return ping(service);
    case Endpoint::kModelMetadata: {
      Result<std::string> metadata = service.model_metadata(target.model, target.version);
      if (!metadata) return error_reply(metadata.status(), options.overload_status);
      return json_reply(200, std::move(metadata).value());
    }
    case Endpoint::kMetrics: {
      OutgoingReply reply = json_reply(200, service.metrics_text());
      reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return reply;
    }
    case Endpoint::kUnknown:
    case Endpoint::kInfer:
    case Endpoint::kInvocations:
    case Endpoint::kAdmin: break;
  }
  TONNAGE_BUG("an endpoint that takes a body was answered without one");
  return error_reply(500, "bug", "this endpoint has no immediate answer");
}

}  // namespace tonnage::http
