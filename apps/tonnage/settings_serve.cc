// SPDX-License-Identifier: Apache-2.0
// The flags of `tonnage serve`; docs/config.md says the same with reasons.
#include <fmt/format.h>

#include "setting_kinds.h"

namespace tonnage::app {
namespace {

constexpr std::pair<std::string_view, model::Policy> kPolicies[] = {
    {"dp", model::Policy::kDp}, {"buckets", model::Policy::kBuckets}, {"fifo", model::Policy::kFifo}};

Setting policy_setting(std::optional<model::Policy>& into) {
  Setting setting{"policy", "WORD", "batching of every model: dp, buckets, fifo, or model (each model's own)",
                  false,    {},     {}};
  setting.set = [&into](std::string_view text) {
    if (text == "model") {
      into.reset();
      return Status::ok();
    }
    for (const auto& [word, policy] : kPolicies) {
      if (text != word) continue;
      into = policy;
      return Status::ok();
    }
    return invalid("bad_value", fmt::format("'{}' is not allowed; allowed: model, dp, buckets, fifo", text));
  };
  setting.show = [&into] {
    for (const auto& [word, policy] : kPolicies) {
      if (into == policy) return std::string(word);
    }
    return std::string("model");
  };
  return setting;
}

Setting overload_setting(int& into) {
  Setting setting{
      "overload-status", "503|429", "HTTP status of a request refused for overload", false, {}, {}};
  setting.set = [&into](std::string_view text) {
    if (text != "503" && text != "429") {
      return invalid("bad_value", fmt::format("'{}' is not allowed; allowed: 503, 429", text));
    }
    into = text == "503" ? 503 : 429;
    return Status::ok();
  };
  setting.show = [&into] { return std::to_string(into); };
  return setting;
}

void add_memory(Settings& settings, server::ServerOptions& o) {
  settings.push_back(bytes_setting({"memory", "SIZE",
                                    "budget for everything, such as 600MiB, taken literally; "
                                    "0: what the machine or container allows, less the headroom"},
                                   o.memory));
  settings.push_back(number_setting({"headroom", "SHARE", "share of the detected limit that is left alone"},
                                    o.headroom, 0, 0.95));
  settings.push_back(
      bytes_setting({"device-memory", "SIZE", "budget on each GPU; 0: 90 % of what its driver says it has"},
                    o.device_memory));
  settings.push_back(bytes_setting(
      {"ingress", "SIZE", "for bodies of requests; 0: 10 % of the budget, at least 32 MiB"}, o.ingress));
  settings.push_back(bytes_setting({"max-body", "SIZE", "largest body of one request"}, o.max_body));
}

void add_network(Settings& settings, server::ServerOptions& o) {
  settings.push_back(text_setting({"host", "ADDRESS", "IP address to listen on"}, o.host));
  settings.push_back(port_setting({"http-port", "PORT", "V2 REST; 0: any free one, off: none"}, o.http_port));
  settings.push_back(port_setting({"sagemaker-port", "PORT",
                                   "/ping and /invocations; may equal --http-port; "
                                   "8080 where SAGEMAKER_* variables are set"},
                                  o.sagemaker_port));
  settings.push_back(
      port_setting({"metrics-port", "PORT", "/metrics; may equal --http-port"}, o.metrics_port));
  settings.push_back(
      text_setting({"port-file", "FILE", "where the real ports are written, as JSON"}, o.port_file));
  settings.push_back(overload_setting(o.overload_status));
  settings.push_back(
      duration_setting({"v2-deadline", "TIME", "longest a V2 request may take"}, o.v2_deadline));
  settings.push_back(duration_setting(
      {"sagemaker-deadline", "TIME", "longest an invocation may take; the platform gives up at 60s"},
      o.sagemaker_deadline));
  settings.push_back(duration_setting({"drain", "TIME", "for requests in flight, after SIGTERM"}, o.drain));
  settings.push_back(duration_setting(
      {"drain-least", "TIME", "after SIGTERM the ports answer (not ready) at least this long"},
      o.drain_least));
  settings.push_back(duration_setting({"header-timeout", "TIME", "for request line and headers to arrive"},
                                      o.header_timeout));
  settings.push_back(duration_setting({"body-stall-timeout", "TIME", "for a real part of a body to arrive"},
                                      o.body_stall_timeout));
  settings.push_back(duration_setting(
      {"keep-alive-timeout", "TIME", "an idle connection is closed after this"}, o.keep_alive_timeout));
}

void add_workers(Settings& settings, server::ServerOptions& o) {
  add_route(settings, o.route);
  settings.push_back(count_setting({"threads", "N", "of each worker; 0: what the model says, else all cores"},
                                   o.threads, 0, 1024));
  settings.push_back(count_setting({"text-threads", "N", "that turn text into ids"}, o.text_threads, 1, 64));
  settings.push_back(policy_setting(o.policy));
  settings.push_back(text_setting({"state", "DIR",
                                   "learned profiles; default: /var/lib/tonnage for root, else "
                                   "$XDG_STATE_HOME/tonnage"},
                                  o.state_directory));
  settings.push_back(text_setting(
      {"worker-dir", "DIR", "where the worker programs are; default: beside this one"}, o.worker_directory));
  settings.push_back(text_setting(
      {"python", "FILE", "interpreter of native workers; default: build/venv's, else python3"}, o.python));
}

}  // namespace

Settings serve_settings(ServeOptions& options) {
  server::ServerOptions& o = options.server;
  Settings settings;
  settings.push_back(
      text_setting({"models", "DIR", "a model repository, or the folder of one model"}, o.models));
  settings.push_back(
      word_setting({"model-control", "WORD", "none, or explicit: models come and go by /v2/repository calls"},
                   o.model_control, {"none", "explicit"}));
  settings.push_back(
      text_setting({"load-models", "NAMES", "at start: all, none, or names with commas"}, o.load_models));
  settings.push_back(
      text_setting({"admin-token-file", "FILE", "a token that lets other machines make /v2/repository calls"},
                   o.admin_token_file));
  add_memory(settings, o);
  add_network(settings, o);
  add_workers(settings, o);
  settings.push_back(
      text_setting({"log-file", "FILE", "log lines go here, rotated; default: standard error"}, o.log_file));
  settings.push_back(word_setting({"log-level", "LEVEL", "debug, info, warning or error"}, o.log_level,
                                  {"debug", "info", "warning", "error"}));
  return settings;
}

}  // namespace tonnage::app
