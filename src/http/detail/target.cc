// SPDX-License-Identifier: Apache-2.0
#include "http/detail/target.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace tonnage::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// "http://host:port/path" (through a proxy) → "/path".
std::string_view without_authority(std::string_view target) {
  const auto scheme = target.find("://");
  if (target.empty() || target.front() == '/' || scheme == std::string_view::npos) return target;
  const auto slash = target.find('/', scheme + 3);
  return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
}

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const auto slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  }
  return parts;
}

// What follows /v2/models/M.
Endpoint model_endpoint(std::vector<std::string_view>& rest, std::string_view& version) {
  if (rest.size() >= 2 && rest[0] == "versions" && !rest[1].empty()) {
    version = rest[1];
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  if (rest.empty()) return Endpoint::kModelMetadata;
  if (rest.size() > 1) return Endpoint::kUnknown;
  if (rest[0] == "infer") return Endpoint::kInfer;
  if (rest[0] == "ready") return Endpoint::kModelReady;
  return Endpoint::kUnknown;
}

// What follows /v2/repository/models/M.
Endpoint repository_endpoint(const std::vector<std::string_view>& rest) {
  if (rest.size() != 1) return Endpoint::kUnknown;
  if (rest[0] == "load") return Endpoint::kLoad;
  if (rest[0] == "unload") return Endpoint::kUnload;
  if (rest[0] == "rotate") return Endpoint::kRotate;
  if (rest[0] == "enforce") return Endpoint::kEnforce;
  if (rest[0] == "observe") return Endpoint::kObserve;
  return Endpoint::kUnknown;
}

Endpoint fixed_endpoint(std::string_view path) {
  if (path == "/v2") return Endpoint::kServerMetadata;
  if (path == "/v2/health/live") return Endpoint::kLive;
  if (path == "/v2/health/ready") return Endpoint::kReady;
  if (path == "/v2/models") return Endpoint::kModels;
  if (path == "/v1/tonnage/status") return Endpoint::kStatus;
  if (path == "/ping") return Endpoint::kPing;
  if (path == "/invocations") return Endpoint::kInvocations;
  if (path == "/metrics") return Endpoint::kMetrics;
  if (path == "/v2/repository/index") return Endpoint::kIndex;
  return Endpoint::kUnknown;
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  std::string_view path = without_authority(text);
  path = path.substr(0, path.find_first_of("?#"));
  if (path.empty() || path.front() != '/') {
    return invalid("bad_target", "the request target must be a path that begins with a slash");
  }
  if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  Target target;
  target.path = path;
  target.endpoint = fixed_endpoint(path);
  constexpr std::string_view kModelsPrefix = "/v2/models/";
  constexpr std::string_view kRepositoryPrefix = "/v2/repository/models/";
  const bool is_repository = path.starts_with(kRepositoryPrefix);
  if (target.endpoint != Endpoint::kUnknown || !(is_repository || path.starts_with(kModelsPrefix)))
    return target;

  const std::size_t prefix = is_repository ? kRepositoryPrefix.size() : kModelsPrefix.size();
  std::vector<std::string_view> rest = split(path.substr(prefix - 1));
  const std::string_view model = rest.front();
  std::string_view version;
  rest.erase(rest.begin());
  if (!model.empty()) {
    target.endpoint = is_repository ? repository_endpoint(rest) : model_endpoint(rest, version);
  }
  const auto decoded_model = percent_decode(model);
  const auto decoded_version = percent_decode(version);
  if (!decoded_model || !decoded_version) {
    return invalid("bad_target", fmt::format("the path '{}' has a broken percent-encoding", path));
  }
  target.model = *decoded_model;
  target.version = *decoded_version;
  return target;
}

bool is_admin(Endpoint endpoint) {
  return endpoint == Endpoint::kIndex || endpoint == Endpoint::kLoad || endpoint == Endpoint::kUnload ||
         endpoint == Endpoint::kRotate || endpoint == Endpoint::kEnforce || endpoint == Endpoint::kObserve;
}

bool takes_body(Endpoint endpoint) {
  return endpoint == Endpoint::kInfer || endpoint == Endpoint::kInvocations || is_admin(endpoint);
}

std::string_view allowed_methods(Endpoint endpoint) { return takes_body(endpoint) ? "POST" : "GET, HEAD"; }

}  // namespace tonnage::http
