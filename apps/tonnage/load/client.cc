// SPDX-License-Identifier: Apache-2.0
#include "load/client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/spans.h"
#include "load/connection.h"

namespace tonnage::load {
namespace {

constexpr std::uint64_t kTimerSlot = ~0ULL;

Status failed(std::string_view what) {
  return {Code::kUnavailable, "connect_failed", fmt::format("{}: {}", what, std::strerror(errno))};
}

}  // namespace

TimePoint now() { return std::chrono::steady_clock::now(); }

Result<Endpoint> parse_endpoint(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const auto refuse = [&] {
    return invalid("bad_url", fmt::format("'{}' is not a URL of the form http://host:port", url));
  };
  if (!url.starts_with(kScheme)) return refuse();
  const std::string_view rest = url.substr(kScheme.size());
  const std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  while (!path.empty() && path.back() == '/') path.remove_suffix(1);
  const std::size_t colon = authority.rfind(':');
  std::string host(authority.substr(0, colon));
  const std::string port(colon == std::string_view::npos ? "80" : authority.substr(colon + 1));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty() || port.empty()) return refuse();

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &raw);
  if (error != 0) {
    return Status(Code::kUnavailable, "connect_failed",
                  fmt::format("{}: {}", authority, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  Endpoint endpoint{std::string(authority), std::string(path), {}, found->ai_addrlen};
  const std::span from(pointer_cast<const char>(found->ai_addr), found->ai_addrlen);
  std::copy(from.begin(), from.end(), pointer_cast<char>(&endpoint.address));
  return endpoint;
}

Result<std::unique_ptr<Client>> Client::make(Endpoint endpoint, std::uint32_t max_connections, Sink sink) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kTimerSlot;
  if (!epoll || !timer || ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, timer.get(), &event) != 0) {
    return failed("epoll");
  }
  return std::make_unique<Client>(std::move(endpoint), max_connections, std::move(sink), std::move(epoll),
                                  std::move(timer));
}

Client::Client(Endpoint endpoint, std::uint32_t max_connections, Sink sink, UniqueFd epoll, UniqueFd timer)
    : endpoint_(std::move(endpoint)),
      max_connections_(max_connections),
      sink_(std::move(sink)),
      epoll_(std::move(epoll)),
      timer_(std::move(timer)) {}

Client::~Client() = default;

std::size_t Client::open_connection(Status& problem) {
  UniqueFd fd(::socket(endpoint_.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!fd) {
    problem = failed("socket");
    return slots_.size();
  }
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // The request is written when the handshake is done (EPOLLOUT).
  if (::connect(fd.get(), pointer_cast<const sockaddr>(&endpoint_.address), endpoint_.address_size) != 0 &&
      errno != EINPROGRESS) {
    problem = failed(endpoint_.host);
    return slots_.size();
  }
  if (vacant_.empty()) {
    vacant_.push_back(slots_.size());
    slots_.emplace_back();
  }
  const std::size_t slot = vacant_.back();
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;  // edges: one registration for good
  event.data.u64 = slot;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    problem = failed("epoll_ctl");
    return slots_.size();
  }
  vacant_.pop_back();
  slots_[slot] = std::make_unique<Connection>(std::move(fd));
  ++open_;
  return slot;
}

void Client::send(std::uint64_t tag, std::string request, bool keep_body) {
  TONNAGE_CHECK(has_room(), "send() without room");
  std::size_t slot = 0;
  if (!idle_.empty()) {
    slot = idle_.back();
    idle_.pop_back();
  } else {
    Status problem;
    slot = open_connection(problem);
    if (!problem.is_ok()) {
      sink_(tag, std::move(problem));
      return;
    }
  }
  Connection& connection = *slots_[slot];
  connection.begin(tag, std::move(request), keep_body);
  if (Status status = connection.write_some(); !status.is_ok()) finish(slot, std::move(status), false);
}

void Client::finish(std::size_t slot, Result<HttpReply> reply, bool keep) {
  const bool was_busy = slots_[slot]->is_busy();
  const std::uint64_t tag = slots_[slot]->tag();
  slots_[slot]->end();
  if (keep) {
    idle_.push_back(slot);
  } else {
    std::erase(idle_, slot);
    slots_[slot].reset();
    vacant_.push_back(slot);
    --open_;
  }
  if (was_busy) sink_(tag, std::move(reply));
}

void Client::handle(std::size_t slot, std::uint32_t events) {
  if (!slots_[slot]) return;  // closed by an earlier event of the same round
  Connection& connection = *slots_[slot];
  if (connection.is_busy() && connection.wants_write()) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(connection.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return finish(slot, failed(endpoint_.host), false);
    if (Status status = connection.write_some(); !status.is_ok())
      return finish(slot, std::move(status), false);
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return;
  Result<std::optional<HttpReply>> read = connection.read_some();
  if (!read.is_ok()) return finish(slot, read.status(), false);
  if (!read->has_value()) return;
  const bool keep = (*read)->keep_alive && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0;
  finish(slot, std::move(**read), keep);
}

void Client::arm(TimePoint until) {
  const Duration at = std::max(until.time_since_epoch(), Duration(1));  // zero would disarm it
  itimerspec when{};
  when.it_value.tv_sec = at / seconds(1);
  when.it_value.tv_nsec = (at % seconds(1)).count();
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Client::wait(TimePoint until) {
  std::array<epoll_event, 256> events{};
  arm(until);
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    if (event.data.u64 != kTimerSlot) handle(event.data.u64, event.events);
  }
}

}  // namespace tonnage::load
