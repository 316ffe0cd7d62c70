// SPDX-License-Identifier: Apache-2.0
// A closed loop over HTTP that costs as little as it can: `clients` connections, each sends the next request
// when it has its answer. One client uses plain blocking calls, so that its latency is the server's.
//   tonnage-bench-echo-client PORT MODEL json|binary BODY_BYTES CLIENTS SECONDS CPU      (CPU -1: not pinned)
// Prints {"p50_us":…,"p99_us":…,"rps":…,"answered":…,"refused":…,"body_bytes":…}.
#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/spans.h"
#include "load/client.h"
#include "load/histogram.h"

namespace tonnage::bench {
namespace {

using load::Endpoint;

struct Options {
  std::string url;
  std::string model;
  bool binary = false;
  std::size_t body_bytes = 0;
  std::uint32_t clients = 1;
  Duration time{};
};

// A request for `x` FP32 [1, n] whose body is as close to `body_bytes` as whole numbers allow.
std::string make_request(const Options& options, const Endpoint& endpoint, std::size_t& body_size) {
  std::string json;
  std::string data;
  std::string length_header;
  if (options.binary) {
    const std::size_t numbers = options.body_bytes / 4;
    data.assign(numbers * 4, '\0');
    json = fmt::format(
        R"({{"inputs":[{{"name":"x","shape":[1,{}],"datatype":"FP32","parameters":{{"binary_data_size":{}}}}}],)"
        R"("outputs":[{{"name":"y","parameters":{{"binary_data":true}}}}]}})",
        numbers, data.size());
    length_header = fmt::format("Inference-Header-Content-Length: {}\r\n", json.size());
  } else {
    for (std::size_t n = 1; json.size() + 4 <= options.body_bytes; ++n) {
      std::string numbers;
      for (std::size_t i = 0; i < n; ++i) numbers += i == 0 ? "0.5" : ",0.5";
      json = fmt::format(R"({{"inputs":[{{"name":"x","shape":[1,{}],"datatype":"FP32","data":[{}]}}]}})", n,
                         numbers);
    }
  }
  body_size = json.size() + data.size();
  return fmt::format("POST {}/v2/models/{}/infer HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n",
                     endpoint.path, options.model, endpoint.host, body_size, length_header) +
         json + data;
}

struct Outcome {
  load::Histogram latency;
  std::vector<double> micros;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  double elapsed = 0;

  void add(Duration latency_of_one, bool ok) {
    latency.record(latency_of_one);
    ++(ok ? answered : refused);
  }
};

Result<Outcome> one_client(const Endpoint& endpoint, const std::string& request, Duration time) {
  const UniqueFd fd(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), pointer_cast<const sockaddr>(&endpoint.address), endpoint.address_size) != 0) {
    return Status(Code::kUnavailable, "connect_failed", endpoint.host);
  }
  Outcome outcome;
  load::ReplyParser parser;
  std::array<char, 64 << 10> buffer{};
  const TimePoint start = load::now();
  const TimePoint warm = start + time / 10;
  while (load::now() < start + time) {
    parser.reset(false);
    const TimePoint before = load::now();
    if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
      return internal("send", "connection lost");
    for (bool complete = false; !complete;) {
      const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (got <= 0) return internal("recv", "connection lost");
      TONNAGE_ASSIGN(complete, parser.feed(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
    }
    const TimePoint after = load::now();
    if (after < warm) continue;
    outcome.micros.push_back(to_seconds(after - before) * 1e6);
    outcome.add(after - before, parser.take().status == 200);
  }
  outcome.elapsed = to_seconds(load::now() - warm);
  return outcome;
}

Result<Outcome> many_clients(const Endpoint& endpoint, const std::string& request, const Options& options) {
  Outcome outcome;
  std::vector<TimePoint> sent(options.clients);
  std::vector<std::uint64_t> ready;
  const TimePoint start = load::now();
  const TimePoint warm = start + options.time / 10;
  TONNAGE_ASSIGN(
      auto client,
      load::Client::make(endpoint, options.clients, [&](std::uint64_t tag, Result<load::HttpReply> reply) {
        const TimePoint at = load::now();
        if (at >= warm) outcome.add(at - sent[tag], reply.is_ok() && reply->status == 200);
        ready.push_back(tag);
      }));
  for (std::uint64_t i = 0; i < options.clients; ++i) ready.push_back(i);
  while (load::now() < start + options.time) {
    std::vector<std::uint64_t> free;
    free.swap(ready);
    for (const std::uint64_t tag : free) {
      sent[tag] = load::now();
      client->send(tag, request, false);
    }
    client->wait(start + options.time);
  }
  outcome.elapsed = to_seconds(load::now() - warm);
  return outcome;
}

Status run(const Options& options) {
  TONNAGE_ASSIGN(const Endpoint endpoint, load::parse_endpoint(options.url));
  std::size_t body_size = 0;
  const std::string request = make_request(options, endpoint, body_size);
  TONNAGE_ASSIGN(Outcome outcome, options.clients == 1 ? one_client(endpoint, request, options.time)
                                                       : many_clients(endpoint, request, options));
  const auto micros = [&](double share) {
    if (outcome.micros.empty()) return to_seconds(outcome.latency.quantile(share)) * 1e6;
    const auto at = static_cast<std::size_t>(share * static_cast<double>(outcome.micros.size() - 1));
    std::nth_element(outcome.micros.begin(), outcome.micros.begin() + static_cast<std::ptrdiff_t>(at),
                     outcome.micros.end());
    return outcome.micros[at];
  };
  fmt::print(
      "{{\"p50_us\":{:.2f},\"p99_us\":{:.2f},\"rps\":{:.1f},\"answered\":{},\"refused\":{},\"body_bytes\":{}}"
      "}\n",
      micros(0.5), micros(0.99), static_cast<double>(outcome.answered) / outcome.elapsed, outcome.answered,
      outcome.refused, body_size);
  return Status::ok();
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) std::perror("sched_setaffinity");
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  using namespace tonnage;
  if (argc != 8) {
    std::fprintf(stderr,
                 "usage: tonnage-bench-echo-client PORT MODEL json|binary BODY_BYTES CLIENTS SECONDS CPU\n");
    return 2;
  }
  bench::Options options;
  options.url = fmt::format("http://127.0.0.1:{}", argv[1]);
  options.model = argv[2];
  options.binary = std::string_view(argv[3]) == "binary";
  options.body_bytes = static_cast<std::size_t>(std::max(std::atol(argv[4]), 4L));
  options.clients = static_cast<std::uint32_t>(std::max(std::atoi(argv[5]), 1));
  options.time = from_seconds(std::atof(argv[6]));
  if (std::atoi(argv[7]) >= 0) bench::pin(std::atoi(argv[7]));
  const Status status = bench::run(options);
  if (!status.is_ok()) fmt::print(stderr, "tonnage-bench-echo-client: {}\n", status.to_string());
  return status.is_ok() ? 0 : 1;
}
