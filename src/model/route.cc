// SPDX-License-Identifier: Apache-2.0
#include "model/route.h"

#include <algorithm>
#include <functional>

#include "base/bug.h"

namespace tonnage::model {
namespace {

using enum PrecisionRule;

// Most hold the file and what they make of it at once while they load.
constexpr Route kRoutes[] = {
    {"trace", "tonnage-worker-torch", "model.pt", 2.0, Tier::kExact, kConverted, "", true},
    {"script", "tonnage-worker-torch", "model.script.pt", 2.0, Tier::kExact, kConverted, "model.pt", true},
    // The program is unpacked to disk and mapped; its weights are copied out of it once.
    {"aoti", "tonnage-worker-torch", "model.pt2", 1.0, Tier::kExact, kPerFile},
    {"onnx", "tonnage-worker-onnx", "model.onnx", 2.0, Tier::kExact},
    // Last of those with a file: what can be loaded without running a script of the folder comes first.
    {"native", "tonnage-worker-native", "inference.py", 2.0, Tier::kCapped, kConverted, "code/inference.py"},
    {"stub", "tonnage-worker-stub", "", 1.0, Tier::kExact, kFp32Only, "", true},
};

constexpr std::pair<std::string_view, Precision> kPrecisions[] = {
    {"fp32", Precision::kFp32}, {"bf16", Precision::kBf16}, {"fp16", Precision::kFp16}};

template <typename Wanted>
std::string names_of(Wanted is_wanted) {
  std::string names;
  for (const Route& route : kRoutes) {
    if (!std::invoke(is_wanted, route)) continue;
    if (!names.empty()) names += ", ";
    names.append("\"").append(route.name).append("\"");
  }
  return names;
}

// "model.pt2" → "model.bf16.pt2"
std::string with_precision(std::string_view file, Precision precision) {
  std::string name(file);
  return name.insert(name.rfind('.'), "." + std::string(precision_name(precision)));
}

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

bool has_precision(const Route& route, Precision precision) {
  return precision == Precision::kFp32 || route.precisions != kFp32Only;
}

std::vector<std::string> files_of(const Route& route, Precision precision) {
  std::vector<std::string> files;
  if (!has_precision(route, precision)) return files;
  const bool is_compiled_in = precision != Precision::kFp32 && route.precisions == kPerFile;
  for (const std::string_view file : {route.file, route.other_file}) {
    if (!file.empty()) files.push_back(is_compiled_in ? with_precision(file, precision) : std::string(file));
  }
  return files;
}

std::string route_names() {
  return names_of([](const Route&) { return true; });
}
std::string device_route_names() { return names_of(&Route::on_device); }

std::string_view tier_name(Tier tier) { return tier == Tier::kExact ? "exact" : "capped"; }

double charged_per_byte(Tier tier) { return tier == Tier::kExact ? 1.0 : 1.1; }

std::string_view precision_name(Precision precision) {
  for (const auto& [name, value] : kPrecisions) {
    if (value == precision) return name;
  }
  return "";
}

std::optional<Precision> find_precision(std::string_view name) {
  for (const auto& [known, value] : kPrecisions) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace tonnage::model
