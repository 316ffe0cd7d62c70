// SPDX-License-Identifier: Apache-2.0
#include "load/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace tonnage::load {
namespace {

constexpr Duration kProgressEvery = milliseconds(100);

class Driver {
 public:
  Driver(Workload& workload, const DriveOptions& options, const Observer& observer)
      : workload_(workload),
        options_(options),
        observer_(observer),
        arrivals_(options.rate > 0 ? options.rate : 1, options.spacing, workload.options().seed ^ 0xa5a5),
        start_(now()) {}

  void connect(std::unique_ptr<Client> client) { client_ = std::move(client); }
  Result<RunTimes> run();
  void on_reply(std::uint64_t tag, Result<HttpReply> reply);

 private:
  struct Flight {
    Shot shot;
    Duration due{};
  };

  bool is_open_loop() const { return options_.rate > 0; }
  Duration elapsed() const { return now() - start_; }
  bool may_send_more(Duration due) const;
  void plan_arrivals();
  void refill();
  void send_waiting();
  void take_off(Duration due);
  void give_up();
  void report(bool force);
  TimePoint next_event() const;

  Workload& workload_;
  const DriveOptions& options_;
  const Observer& observer_;
  Arrivals arrivals_;
  TimePoint start_;
  std::unique_ptr<Client> client_;

  std::optional<Duration> next_due_;  // open loop: the arrival that is not due yet
  std::deque<Duration> waiting_;      // due times of what could not be sent yet
  std::unordered_map<std::uint64_t, Flight> in_flight_;
  std::uint64_t next_tag_ = 0;
  Progress progress_;
  Duration last_send_{};
  Duration last_report_{};
  bool stopped_ = false;
  bool connected_ = false;
  std::optional<Status> failure_;
};

bool Driver::may_send_more(Duration due) const {
  if (stopped_) return false;
  if (options_.requests > 0 && next_tag_ + waiting_.size() >= options_.requests) return false;
  return options_.duration == Duration(0) || due < options_.warmup + options_.duration;
}

void Driver::plan_arrivals() {
  while (may_send_more(next_due_.value_or(Duration(0)))) {
    if (!next_due_) next_due_ = arrivals_.next();
    if (*next_due_ > elapsed() || !may_send_more(*next_due_)) return;
    waiting_.push_back(*next_due_);
    next_due_.reset();
  }
  next_due_.reset();
}

void Driver::refill() {
  while (in_flight_.size() < options_.outstanding && client_->has_room() && may_send_more(elapsed())) {
    take_off(elapsed());
  }
}

void Driver::send_waiting() {
  while (!waiting_.empty() && client_->has_room()) {
    const Duration due = waiting_.front();
    waiting_.pop_front();
    take_off(due);
  }
}

void Driver::take_off(Duration due) {
  const std::uint64_t tag = next_tag_++;
  Flight flight{workload_.next(), due};
  std::string request =
      workload_.http_request(flight.shot, client_->endpoint().host, client_->endpoint().path);
  in_flight_.emplace(tag, std::move(flight));
  ++progress_.sent;
  last_send_ = elapsed();
  client_->send(tag, std::move(request), options_.keep_bodies);
}

void Driver::on_reply(std::uint64_t tag, Result<HttpReply> reply) {
  auto node = in_flight_.extract(tag);
  if (node.empty()) return;  // given up before
  const Flight& flight = node.mapped();
  Sample sample;
  sample.length_class = flight.shot.length_class;
  sample.tokens = flight.shot.tokens;
  if (workload_.options().payload == Payload::kText) sample.text = flight.shot.rows.front();
  sample.start = flight.due;
  sample.is_warmup = flight.due < options_.warmup;
  sample.latency = elapsed() - flight.due;
  if (reply.is_ok()) {
    connected_ = true;
    sample.status = reply->status;
    sample.truncated = reply->truncated;
    sample.body = std::move(reply->body);
    sample.reason = sample.is_answered() ? "ok" : std::move(reply->reason);
    if (sample.reason.empty()) sample.reason = fmt::format("http_{}", sample.status);
  } else {
    sample.reason = reply.status().reason();
    if (!connected_ && sample.reason == "connect_failed") failure_ = reply.status();
  }
  sample.is_answered() ? ++progress_.answered : ++progress_.refused;
  observer_.on_sample(sample);
}

void Driver::give_up() {
  while (!in_flight_.empty()) {
    on_reply(in_flight_.begin()->first,
             Status(Code::kDeadlineExceeded, "no_reply", "the server did not answer"));
  }
}

void Driver::report(bool force) {
  if (!observer_.on_progress || (!force && elapsed() - last_report_ < kProgressEvery)) return;
  last_report_ = elapsed();
  progress_.outstanding = static_cast<std::uint32_t>(in_flight_.size());
  progress_.waiting = waiting_.size();
  progress_.elapsed = last_report_;
  observer_.on_progress(progress_);
}

TimePoint Driver::next_event() const {
  Duration at = elapsed() + kProgressEvery;
  if (next_due_) at = std::min(at, *next_due_);
  return start_ + at;
}

Result<RunTimes> Driver::run() {
  for (;;) {
    if (!stopped_ && observer_.wants_stop && observer_.wants_stop()) {
      stopped_ = true;
      waiting_.clear();
    }
    if (is_open_loop()) {
      plan_arrivals();
      send_waiting();
    } else {
      refill();
    }
    if (failure_) return *failure_;
    const bool more = is_open_loop() ? next_due_ || !waiting_.empty() : may_send_more(elapsed());
    if (!more && in_flight_.empty()) break;
    if (!more && elapsed() - last_send_ > options_.patience) give_up();
    client_->wait(next_event());
    report(false);
  }
  report(true);
  return RunTimes{last_send_, elapsed()};
}

}  // namespace

Result<RunTimes> run_requests(Endpoint endpoint, Workload& workload, const DriveOptions& options,
                              const Observer& observer) {
  Driver driver(workload, options, observer);
  const std::uint32_t connections =
      options.rate > 0 ? options.max_connections : std::min(options.max_connections, options.outstanding);
  TONNAGE_ASSIGN(auto client, Client::make(std::move(endpoint), connections,
                                           [&driver](std::uint64_t tag, Result<HttpReply> reply) {
                                             driver.on_reply(tag, std::move(reply));
                                           }));
  driver.connect(std::move(client));
  return driver.run();
}

}  // namespace tonnage::load
