// SPDX-License-Identifier: Apache-2.0
#include "load/discover.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

namespace tonnage::load {
namespace {

constexpr Duration kPatience = seconds(10);

Result<std::string> get(const Endpoint& endpoint, const std::string& path) {
  std::optional<Result<HttpReply>> told;
  TONNAGE_ASSIGN(const auto client,
                 Client::make(endpoint, 1, [&told](std::uint64_t, Result<HttpReply> reply) {
                   told.emplace(std::move(reply));
                 }));
  client->send(0, fmt::format("GET {}{} HTTP/1.1\r\nHost: {}\r\n\r\n", endpoint.path, path, endpoint.host),
               true);
  const TimePoint limit = now() + kPatience;
  while (!told && now() < limit) client->wait(limit);
  if (!told) {
    return Status(Code::kDeadlineExceeded, "no_reply",
                  fmt::format("{} did not answer {} in 10 s", endpoint.host, path));
  }
  if (!told->is_ok()) return told->status();
  const HttpReply reply = std::move(*told).value();
  if (reply.status != 200) {
    return Status(Code::kNotFound, "no_model",
                  fmt::format("GET {} answered {}: {}", path, reply.status, reply.body.substr(0, 200)));
  }
  return reply.body;
}

}  // namespace

Result<ModelInfo> discover(const Endpoint& endpoint, const std::string& model) {
  std::string name = model;
  if (name.empty()) {
    TONNAGE_ASSIGN(const std::string list, get(endpoint, "/v2/models"));
    TONNAGE_ASSIGN(const std::vector<std::string> names, parse_model_names(list));
    if (names.size() != 1) {
      return invalid("which_model", fmt::format("the server has {} models ({}): choose one with --model",
                                                names.size(), fmt::join(names, ", ")));
    }
    name = names.front();
  }
  TONNAGE_ASSIGN(const std::string metadata, get(endpoint, "/v2/models/" + name));
  return parse_model_info(metadata);
}

}  // namespace tonnage::load
