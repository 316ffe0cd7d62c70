// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <chrono>
#include <unordered_map>
#include <utility>
#include <vector>

#include "http/detail/connection.h"
#include "telemetry/metric_names.h"

namespace tonnage::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using SteadyTimer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                               asio::wait_traits<std::chrono::steady_clock>, Executor>;

// Timeouts are looked at this often; one timer for all connections, none per request.
Duration tick_of(const HttpOptions& options) {
  const Duration least =
      std::min({options.header_timeout, options.body_stall_timeout, options.keep_alive_timeout});
  return std::clamp<Duration>(least / 4, milliseconds(1), seconds(1));
}

Status cannot_listen(const HttpOptions& options, const error_code& error) {
  const std::string at = fmt::format("{}:{}", options.host, options.port);
  if (error == asio::error::address_in_use) {
    return {Code::kUnavailable, "port_in_use", fmt::format("{} is in use by another program", at)};
  }
  return {Code::kUnavailable, "cannot_listen", fmt::format("cannot listen on {}: {}", at, error.message())};
}

}  // namespace

struct HttpServer::State final : ConnectionOwner, std::enable_shared_from_this<State> {
  State(asio::io_context& io, const HttpOptions& given, api::Service& called, telemetry::Log& logged)
      : options_(given),
        service_(called),
        log_(logged),
        acceptor_(io),
        retry_(io),
        ticker_(io),
        tick_(tick_of(given)) {}

  const HttpOptions& options() const override { return options_; }
  api::Service& service() override { return service_; }
  bool is_draining() const override { return draining_; }
  void on_reply(int status) override;
  void on_closed(Connection& connection) override;

  Status open();
  void accept();
  void on_accepted(const error_code& error, Socket socket);
  void add(Socket socket);
  void tick();
  void drain();
  void close();
  // A copy: closing one takes it out of the map.
  std::vector<std::shared_ptr<Connection>> snapshot() const;
  void count_connections();

  HttpOptions options_;
  api::Service& service_;
  telemetry::Log& log_;
  Acceptor acceptor_;
  SteadyTimer retry_;
  SteadyTimer ticker_;
  Duration tick_;
  std::uint16_t port_ = 0;
  bool draining_ = false;
  bool closed_ = false;
  bool ticking_ = false;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::unordered_map<int, telemetry::Counter*> reply_counters_;
};

Status HttpServer::State::open() {
  error_code error;
  const std::string host = options_.host == "localhost" ? "127.0.0.1" : options_.host;
  const auto address = asio::ip::make_address(host, error);
  if (error) return invalid("bad_host", fmt::format("'{}' is not an IP address", options_.host));
  const tcp::endpoint endpoint(address, options_.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  // "::" takes IPv4 as well, where the system can.
  if (!error && address.is_v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  return error ? cannot_listen(options_, error) : Status::ok();
}

void HttpServer::State::accept() {
  acceptor_.async_accept([self = shared_from_this()](const error_code& error, Socket socket) {
    self->on_accepted(error, std::move(socket));
  });
}

void HttpServer::State::on_accepted(const error_code& error, Socket socket) {
  if (closed_) return;
  if (!error) {
    add(std::move(socket));
    return accept();
  }
  if (error == asio::error::operation_aborted) return;
  if (error == asio::error::connection_aborted) return accept();
  // Out of descriptors or buffers: trying again at once would spin.
  log_.warn("accept_failed", {{"port", std::int64_t{port_}}, {"why", error.message()}});
  retry_.expires_after(milliseconds(100));
  retry_.async_wait([self = shared_from_this()](const error_code& cancelled) {
    if (!cancelled && !self->closed_) self->accept();
  });
}

void HttpServer::State::add(Socket socket) {
  if (connections_.size() >= options_.max_connections) {
    log_.warn("too_many_connections",
              {{"port", std::int64_t{port_}}, {"limit", std::uint64_t{options_.max_connections}}});
    return;  // the socket closes itself
  }
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  auto connection = std::make_shared<Connection>(std::move(socket), *this);
  connections_.emplace(connection.get(), connection);
  count_connections();
  connection->start();
  if (!ticking_) tick();
}

void HttpServer::State::tick() {
  ticking_ = true;
  ticker_.expires_after(tick_);
  ticker_.async_wait([self = shared_from_this()](const error_code& error) {
    self->ticking_ = false;
    if (self->closed_) return;
    const TimePoint now = std::chrono::steady_clock::now();
    if (!error) {
      for (const auto& connection : self->snapshot()) connection->check_deadline(now);
    }
    // Cancelled because the last one left; another may have come meanwhile.
    if (!self->connections_.empty()) self->tick();
  });
}

std::vector<std::shared_ptr<Connection>> HttpServer::State::snapshot() const {
  std::vector<std::shared_ptr<Connection>> all;
  all.reserve(connections_.size());
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

void HttpServer::State::on_reply(int status) {
  if (options_.metrics_registry == nullptr) return;
  telemetry::Counter*& counter = reply_counters_[status];
  if (counter == nullptr) {
    counter = &options_.metrics_registry->counter(
        telemetry::metric::kHttpReplies,
        {{"port", fmt::format("{}", port_)}, {"status", fmt::format("{}", status)}});
  }
  counter->add();
}

void HttpServer::State::count_connections() {
  if (options_.metrics_registry == nullptr) return;
  options_.metrics_registry->gauge(telemetry::metric::kConnections, {{"port", fmt::format("{}", port_)}})
      .set(static_cast<double>(connections_.size()));
}

void HttpServer::State::on_closed(Connection& connection) {
  connections_.erase(&connection);
  count_connections();
  if (connections_.empty()) ticker_.cancel();
}

void HttpServer::State::drain() {
  draining_ = true;
  for (const auto& connection : snapshot()) connection->drain();
}

void HttpServer::State::close() {
  closed_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  for (const auto& connection : snapshot()) connection->abandon();
  ticker_.cancel();
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { state_->close(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(boost::asio::io_context& io,
                                                       const HttpOptions& options, api::Service& service,
                                                       telemetry::Log& log) {
  auto state = std::make_shared<State>(io, options, service, log);
  TONNAGE_TRY(state->open());
  state->accept();
  return std::make_unique<HttpServer>(std::move(state));
}

std::uint16_t HttpServer::port() const { return state_->port_; }
void HttpServer::drain() { state_->drain(); }
std::size_t HttpServer::busy_connections() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      state_->connections_, [](const auto& entry) { return !entry.second->is_idle(); }));
}

}  // namespace tonnage::http
