// SPDX-License-Identifier: Apache-2.0
#include "http/detail/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "http/detail/hex.h"

namespace tonnage::http {
namespace {

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

// What follows a prefix, cut at its slashes.
using Parts = std::vector<std::string_view>;

Parts split(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const auto slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash);
  }
  return parts;
}

// What follows /v2/models/M.
Endpoint model_endpoint(Parts& rest, std::string_view& version) {
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

// What operators may ask for: all of it is POST, and all of it needs --model-control explicit.
struct AdminPath {
  std::string_view verb;
  api::AdminKind kind;
  bool names_a_model;  // /v2/repository/models/M/VERB, else /v2/repository/VERB
};
constexpr std::array<AdminPath, 6> kAdminPaths = {{{"index", api::AdminKind::kIndex, false},
                                                   {"load", api::AdminKind::kLoad, true},
                                                   {"unload", api::AdminKind::kUnload, true},
                                                   {"rotate", api::AdminKind::kRotate, true},
                                                   {"enforce", api::AdminKind::kEnforce, true},
                                                   {"observe", api::AdminKind::kObserve, true}}};

Endpoint fixed_endpoint(std::string_view path) {
  if (path == "/v2") return Endpoint::kServerMetadata;
  if (path == "/v2/health/live") return Endpoint::kLive;
  if (path == "/v2/health/ready") return Endpoint::kReady;
  if (path == "/v2/models") return Endpoint::kModels;
  if (path == "/v1/tonnage/status") return Endpoint::kStatus;
  if (path == "/ping") return Endpoint::kPing;
  if (path == "/invocations") return Endpoint::kInvocations;
  if (path == "/metrics") return Endpoint::kMetrics;
  return Endpoint::kUnknown;
}

void find_model_call(Parts rest, Target& target, std::string_view& model, std::string_view& version) {
  model = rest.front();
  rest.erase(rest.begin());
  if (!model.empty()) target.endpoint = model_endpoint(rest, version);
}

void find_admin_call(const Parts& rest, Target& target, std::string_view& model) {
  const bool names_a_model = rest.size() == 3 && rest[0] == "models" && !rest[1].empty();
  if (!names_a_model && rest.size() != 1) return;
  const auto is_asked = [&](const AdminPath& path) {
    return path.verb == rest.back() && path.names_a_model == names_a_model;
  };
  const auto* const found = std::ranges::find_if(kAdminPaths, is_asked);
  if (found == kAdminPaths.end()) return;
  target.endpoint = Endpoint::kAdmin;
  target.admin = found->kind;
  if (names_a_model) model = rest[1];
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
  if (target.endpoint != Endpoint::kUnknown) return target;

  constexpr std::string_view kModels = "/v2/models";
  constexpr std::string_view kRepository = "/v2/repository";
  const auto is_under = [path](std::string_view folder) {
    return path.starts_with(folder) && path.substr(folder.size()).starts_with('/');
  };
  std::string_view model;
  std::string_view version;
  if (is_under(kModels)) find_model_call(split(path.substr(kModels.size())), target, model, version);
  if (is_under(kRepository)) find_admin_call(split(path.substr(kRepository.size())), target, model);
  const auto decoded_model = percent_decode(model);
  const auto decoded_version = percent_decode(version);
  if (!decoded_model || !decoded_version) {
    return invalid("bad_target", fmt::format("the path '{}' has a broken percent-encoding", path));
  }
  target.model = *decoded_model;
  target.version = *decoded_version;
  return target;
}

bool takes_body(Endpoint endpoint) {
  return endpoint == Endpoint::kInfer || endpoint == Endpoint::kInvocations || endpoint == Endpoint::kAdmin;
}

std::string_view allowed_methods(Endpoint endpoint) { return takes_body(endpoint) ? "POST" : "GET, HEAD"; }

}  // namespace tonnage::http
