// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "api/infer_service.h"
#include "http/server.h"
#include "memory/device_ledger.h"
#include "memory/limits.h"
#include "memory/reading.h"
#include "model/fallback.h"
#include "model/model_toml.h"
#include "pipeline/pipeline.h"
#include "server/asio_loop.h"
#include "server/front_use.h"
#include "server/launch.h"
#include "server/port_file.h"
#include "state/state_store.h"
#include "supervisor/child_process.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace tonnage::server {
namespace {

constexpr std::size_t kTextJobs = 256;
constexpr Duration kFrontReadingEvery = seconds(1);
constexpr Duration kDrainPoll = milliseconds(20);
constexpr std::size_t kShortestToken = 16;

struct Found {
  Bytes budget;
  std::string admin_token;
  std::vector<model::RepositoryEntry> models;
};

// The repository as it is now, with what the command line says about every model.
Result<std::vector<model::RepositoryEntry>> scan(const ServerOptions& options) {
  TONNAGE_ASSIGN(std::vector<model::RepositoryEntry> models,
                 model::scan_repository(options.models, options.route));
  for (model::RepositoryEntry& entry : models) {
    if (!entry.spec.is_ok()) continue;
    if (options.policy) entry.spec->batching.policy = *options.policy;
    if (options.threads > 0) entry.spec->threads = options.threads;
  }
  return models;
}

// --load-models: the named ones of the repository stay.
Status keep_named(const std::string& names, std::vector<model::RepositoryEntry>& models) {
  std::vector<std::string> wanted;
  std::istringstream words(names == "none" ? "" : names);
  for (std::string word; std::getline(words, word, ',');) wanted.push_back(word);
  for (const std::string& word : wanted) {
    if (std::ranges::find(models, word, &model::RepositoryEntry::name) == models.end()) {
      return invalid("bad_option",
                     fmt::format("--load-models names '{}', which the repository does not hold", word));
    }
  }
  std::erase_if(models, [&](const model::RepositoryEntry& entry) {
    return std::ranges::find(wanted, entry.name()) == wanted.end();
  });
  return Status::ok();
}

Result<std::string> read_token(const std::string& path) {
  std::ifstream in(path);
  std::string token;
  std::getline(in, token);
  if (in.bad() || token.size() < kShortestToken) {
    return invalid("bad_option",
                   fmt::format("--admin-token-file {}: its first line must be a token of at least "
                               "{} characters",
                               path, kShortestToken));
  }
  return token;
}

// A model whose fallback is missing or another kind of model is not started.
void check_fallbacks(std::vector<model::RepositoryEntry>& models) {
  const auto find = [&](std::string_view name) -> const model::ModelSpec* {
    const auto found = std::ranges::find_if(models, [name](const model::RepositoryEntry& entry) {
      return entry.spec.is_ok() && entry.spec->name == name;
    });
    return found == models.end() ? nullptr : &*found->spec;
  };
  std::vector<Status> checked;
  for (const model::RepositoryEntry& entry : models) {
    checked.push_back(entry.spec.is_ok() ? model::check_fallbacks(*entry.spec, find) : Status::ok());
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!checked[i].is_ok()) models[i].spec = checked[i];
  }
}

// What can be known before anything is started.
Result<Found> prepare(const ServerOptions& options) {
  Found found;
  TONNAGE_ASSIGN(const std::vector<memory::DetectedLimit> limits, memory::detect_limits());
  found.budget = memory::budget_from(options.memory, limits, options.headroom);
  if (options.models.empty())
    return invalid("no_models", "--models DIR is missing: a folder with models, or one model's folder");
  TONNAGE_ASSIGN(found.models, scan(options));
  // Of the whole repository: a fallback that is not loaded now may be loaded by call.
  check_fallbacks(found.models);
  if (options.load_models != "all") TONNAGE_TRY(keep_named(options.load_models, found.models));
  if (!options.admin_token_file.empty()) {
    TONNAGE_ASSIGN(found.admin_token, read_token(options.admin_token_file));
  }
  return found;
}

Bytes ingress_limit(const ServerOptions& options, Bytes budget) {
  return options.ingress > Bytes() ? options.ingress : std::max(mib(32), scale(budget, 0.10));
}

api::ServiceOptions service_options(const ServerOptions& options, Bytes budget) {
  api::ServiceOptions service;
  service.ingress_limit = ingress_limit(options, budget);
  service.max_body = std::min(options.max_body, service.ingress_limit);
  service.v2_deadline = options.v2_deadline;
  service.sagemaker_deadline = options.sagemaker_deadline;
  service.unload_drain = options.drain;
  service.model_control = options.model_control == "explicit";
  return service;
}

// Everything that lives while the server runs, in the order in which it depends on each other.
class Running {
 public:
  Running(const ServerOptions& options, Found found)
      : options_(options),
        admin_token_(found.admin_token),
        log_(telemetry::make_log(log_options(options))),
        loop_(io_),
        budget_("host", found.budget),
        devices_(options.device_memory),
        processes_(loop_),
        profiles_(state::StateStore::open(options.state_directory, *log_)),
        pipeline_(pipeline_options(options, found.budget),
                  {loop_, processes_, budget_, *log_, profiles_.get(), &metrics_, &devices_}),
        service_(service_options(options, found.budget),
                 {loop_, pipeline_, pool_, budget_, metrics_, [&options] { return scan(options); }}),
        pool_(loop_, options.text_threads, kTextJobs),
        signals_(io_, SIGTERM, SIGINT) {}

  ~Running() { pipeline_.stop(); }  // what is still open is answered while everybody is there

  Status start(std::vector<model::RepositoryEntry> models) {
    TONNAGE_TRY(listen());
    for (model::RepositoryEntry& entry : models) add(std::move(entry));
    read_front();
    await_signal();
    return Status::ok();
  }

  void serve() { io_.run(); }

 private:
  static telemetry::LogOptions log_options(const ServerOptions& options) {
    telemetry::LogOptions log;
    log.file = options.log_file;
    if (options.log_level == "debug") log.level = telemetry::Level::kDebug;
    if (options.log_level == "warning") log.level = telemetry::Level::kWarning;
    if (options.log_level == "error") log.level = telemetry::Level::kError;
    return log;
  }

  static pipeline::PipelineOptions pipeline_options(const ServerOptions& options, Bytes budget) {
    pipeline::PipelineOptions pipeline = worker_side(options);
    pipeline.ingress_limit = ingress_limit(options, budget);
    return pipeline;
  }

  Status listen() {
    Ports ports;
    http::HttpOptions common;
    common.host = options_.host;
    common.overload_status = options_.overload_status;
    common.header_timeout = options_.header_timeout;
    common.body_stall_timeout = options_.body_stall_timeout;
    common.keep_alive_timeout = options_.keep_alive_timeout;
    common.metrics_registry = &metrics_;
    const bool shared = options_.http_port && options_.sagemaker_port && *options_.http_port != 0 &&
                        *options_.http_port == *options_.sagemaker_port;
    const bool shared_metrics = options_.http_port && options_.metrics_port && *options_.http_port != 0 &&
                                *options_.http_port == *options_.metrics_port;
    if (options_.http_port) {
      http::HttpOptions data = common;
      data.port = *options_.http_port;
      data.admin = options_.model_control == "explicit";
      data.admin_token = admin_token_;
      data.sagemaker = shared;
      data.metrics = shared_metrics;
      TONNAGE_ASSIGN(ports.http, open(data, "--http-port"));
      if (shared) ports.sagemaker = ports.http;
      if (shared_metrics) ports.metrics = ports.http;
    }
    if (options_.sagemaker_port && !shared) {
      http::HttpOptions sagemaker = common;
      sagemaker.port = *options_.sagemaker_port;
      sagemaker.sagemaker = true;
      TONNAGE_ASSIGN(ports.sagemaker, open(sagemaker, "--sagemaker-port"));
    }
    if (options_.metrics_port && !shared_metrics) {
      http::HttpOptions metrics = common;
      metrics.port = *options_.metrics_port;
      metrics.v2 = false;
      metrics.metrics = true;
      TONNAGE_ASSIGN(ports.metrics, open(metrics, "--metrics-port"));
    }
    log_->info("listening", {{"http", std::int64_t{ports.http.value_or(0)}},
                             {"sagemaker", std::int64_t{ports.sagemaker.value_or(0)}},
                             {"metrics", std::int64_t{ports.metrics.value_or(0)}},
                             {"budget_bytes", budget_.root().limit().count()}});
    return options_.port_file.empty() ? Status::ok() : write_port_file(options_.port_file, ports);
  }

  Result<std::optional<std::uint16_t>> open(const http::HttpOptions& options, std::string_view flag) {
    auto server = http::HttpServer::listen(io_, options, service_, *log_);
    if (!server.is_ok()) {
      return Status(server.status().code(), server.status().reason(),
                    fmt::format("{} {}: {}", flag, options.port, server.status().detail()));
    }
    const std::uint16_t port = (*server)->port();
    listeners_.push_back(std::move(server).value());
    return std::optional<std::uint16_t>(port);
  }

  void add(model::RepositoryEntry entry) {
    const std::string name = entry.name();
    Status added = entry.spec.status();
    if (added.is_ok()) added = service_.add_tokenizer(*entry.spec);
    if (added.is_ok()) added = pipeline_.add_model(std::move(entry.spec).value());
    if (added.is_ok()) return;
    log_->error("model_refused", {{"directory", entry.directory}, {"why", added.detail()}});
    service_.add_broken(name, added);
  }

  // The front's own resident memory is a fact: what is not ingress or envelopes is its base.
  void read_front() {
    if (const auto reading = memory::read_process(::getpid()); reading.is_ok()) {
      Bytes transient;
      for (const memory::Account* account : budget_.root().children()) {
        if (account->name() == "ingress" || account->name() == "envelopes") transient += account->used();
      }
      const Bytes free_in_heap(::mallinfo2().fordblks);
      const FrontUse use = front_use_.read(
          {reading->anonymous, transient, free_in_heap, pipeline_.open_requests() == 0}, loop_.now());
      if (use.trim) ::malloc_trim(0);
      front_base_.release();
      front_base_ = budget_.root().child("front").record(use.base);
    }
    devices_.look();
    next_reading_ = loop_.call_after(kFrontReadingEvery, [this] { read_front(); });
  }

  void await_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      if (drain_until_ != kNever) return finish();
      log_->info("draining", {{"signal", std::int64_t{number}}});
      drain_until_ = loop_.now() + options_.drain;
      drain_least_until_ = loop_.now() + std::min(options_.drain, options_.drain_least);
      service_.drain();
      for (const auto& listener : listeners_) listener->drain();
      await_signal();
      await_empty();
    });
  }

  void await_empty() {
    // A connection in a call stays until it is answered, so this waits for bodies, texts and replies too.
    const bool is_empty =
        pipeline_.open_requests() == 0 && loop_.now() >= drain_least_until_ &&
        std::ranges::all_of(listeners_, [](const auto& l) { return l->busy_connections() == 0; });
    if (is_empty || loop_.now() >= drain_until_) return finish();
    drain_timer_ = loop_.call_after(kDrainPoll, [this] { await_empty(); });
  }

  void finish() {
    pipeline_.stop();
    // Replies that were just answered still have to leave.
    drain_timer_ = loop_.call_after(kDrainPoll, [this] { io_.stop(); });
  }

  const ServerOptions& options_;
  const std::string admin_token_;
  std::unique_ptr<telemetry::Log> log_;
  telemetry::Registry metrics_;
  boost::asio::io_context io_{1};
  AsioLoop loop_;
  memory::Budget budget_;
  memory::Devices devices_;
  supervisor::ChildProcessFactory processes_;
  std::unique_ptr<state::StateStore> profiles_;
  memory::Charge front_base_;
  FrontUseTracker front_use_;
  pipeline::Pipeline pipeline_;
  api::InferService service_;
  text::Pool pool_;  // after the service: what it still answers goes there
  std::vector<std::unique_ptr<http::HttpServer>> listeners_;
  boost::asio::signal_set signals_;
  Loop::Timer next_reading_;
  Loop::Timer drain_timer_;
  TimePoint drain_until_ = kNever;
  TimePoint drain_least_until_{};
};

}  // namespace

Status check(const ServerOptions& options) {
  TONNAGE_ASSIGN(const Found found, prepare(options));
  for (const model::RepositoryEntry& entry : found.models) {
    if (!entry.spec.is_ok()) return entry.spec.status();
  }
  return Status::ok();
}

Status run(const ServerOptions& options) {
  TONNAGE_ASSIGN(Found found, prepare(options));
  std::vector<model::RepositoryEntry> models = std::move(found.models);
  Running running(options, std::move(found));
  TONNAGE_TRY(running.start(std::move(models)));
  running.serve();
  return Status::ok();
}

}  // namespace tonnage::server
