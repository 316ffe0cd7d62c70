// SPDX-License-Identifier: Apache-2.0
#include "model/route.h"

#include <algorithm>

#include "base/bug.h"

namespace tonnage::model {
namespace {

// TorchScript holds the file and the module at once while it loads.
constexpr Route kRoutes[] = {
    {"trace", "tonnage-worker-torch", "model.pt", 2.0, Tier::kExact},
    {"script", "tonnage-worker-torch", "model.pt", 2.0, Tier::kExact},
    // Last of those with a file: what can be loaded without running a script of the folder comes first.
    {"native", "tonnage-worker-native", "inference.py", 2.0, Tier::kCapped, "code/inference.py"},
    {"stub", "tonnage-worker-stub", "", 1.0, Tier::kExact},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

const Route* find_route(std::string_view name) {
  const auto* found = std::ranges::find(kRoutes, name, &Route::name);
  return found == std::end(kRoutes) ? nullptr : found;
}

const Route& route_of(std::string_view name) {
  const Route* route = find_route(name);
  TONNAGE_CHECK(route != nullptr, "a checked spec names a route of the table");
  return *route;
}

std::string route_names() {
  std::string names;
  for (const Route& route : kRoutes) {
    if (!names.empty()) names += ", ";
    names.append("\"").append(route.name).append("\"");
  }
  return names;
}

std::string_view tier_name(Tier tier) { return tier == Tier::kExact ? "exact" : "capped"; }

double charged_per_byte(Tier tier) { return tier == Tier::kExact ? 1.0 : 1.1; }

}  // namespace tonnage::model
