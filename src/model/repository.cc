// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "model/detail/consistency.h"
#include "model/detail/script_folder.h"
#include "model/model_toml.h"
#include "model/route.h"

namespace tonnage::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeldOut = "held_out.json";

Status no_model(std::string detail) { return {Code::kNotFound, "no_model", std::move(detail)}; }

// std::filesystem's error_code forms everywhere: a folder that vanishes meanwhile must not throw.
bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// As Triton: decimal, no leading zero; anything else is not a version.
std::optional<std::uint64_t> version_number(std::string_view name) {
  if (name.empty() || name.size() > 18 || name.front() == '0') return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

std::optional<std::uint64_t> highest_version(const fs::path& folder) {
  std::optional<std::uint64_t> highest;
  for (const fs::path& child : children(folder)) {
    const auto number = version_number(child.filename().string());
    if (number && is_folder(child) && (!highest || *number > *highest)) highest = number;
  }
  return highest;
}

Result<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return no_model(fmt::format("{} cannot be read", path.string()));
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

// What [native] names as its entry is the file of that route; empty: not said.
std::string entry_file(const Route& route, const ModelSpec& spec) {
  const auto entry = spec.options.find("entry");
  if (!is_script(route.file) || entry == spec.options.end()) return {};
  return entry->second.substr(0, entry->second.find(':'));
}

// Names of the files that the route would take in this precision, best first.
std::vector<std::string> candidates(const Route& route, const ModelSpec& spec) {
  if (std::string entry = entry_file(route, spec); !entry.empty()) return {std::move(entry)};
  return files_of(route, spec.precision);
}

// The first of them that is there; empty: none.
std::string file_in(const fs::path& folder, const Route& route, const ModelSpec& spec) {
  for (const std::string& name : candidates(route, spec)) {
    if (is_file(folder / name)) return (folder / name).string();
  }
  return {};
}

// "\"trace\", \"script\"": what could be loaded from this folder instead.
std::string routes_in(const fs::path& folder, const ModelSpec& spec) {
  std::string names;
  for (const Route& route : routes()) {
    if (!file_in(folder, route, spec).empty())
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", route.name);
  }
  return names;
}

Status find_file_of(const Route& route, const fs::path& folder, ModelSpec& spec) {
  const std::string_view precision = precision_name(spec.precision);
  if (!has_precision(route, spec.precision)) {
    return invalid("bad_config", fmt::format("{}: route \"{}\" has no precision \"{}\"; allowed: \"fp32\"",
                                             folder.string(), route.name, precision));
  }
  if (!spec.device.empty() && !route.on_device) {
    return invalid(
        "bad_config",
        fmt::format("{}: route \"{}\" runs on the cpu, 'device' is \"{}\"; allowed with a device: {}",
                    folder.string(), route.name, spec.device, device_route_names()));
  }
  if (route.file.empty()) return Status::ok();
  spec.path = file_in(folder, route, spec);
  if (!spec.path.empty()) return Status::ok();
  const std::string there = routes_in(folder, spec);
  return no_model(fmt::format("{} holds no {}, the file of route \"{}\" in {}; it holds files of: {}",
                              folder.string(), fmt::join(candidates(route, spec), " or "), route.name,
                              precision, there.empty() ? "none" : there));
}

// Which file the model is, and by which route, where model.toml does not say.
Status find_model_file(const fs::path& folder, ModelSpec& spec) {
  if (const Route* said = find_route(spec.route)) return find_file_of(*said, folder, spec);
  std::string known;
  for (const Route& route : routes()) {
    if (!file_in(folder, route, spec).empty()) {
      spec.route = route.name;
      return find_file_of(route, folder, spec);
    }
    for (const std::string& file : candidates(route, spec))
      known += fmt::format("{}{} (\"{}\")", known.empty() ? "" : ", ", file, route.name);
  }
  return no_model(
      fmt::format("{} holds no model file: expected one of {}, or a model.toml with route = \"stub\"",
                  folder.string(), known));
}

bool holds_a_model_file(const fs::path& folder) {
  ModelSpec any;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    any.precision = precision;
    if (!routes_in(folder, any).empty()) return true;
  }
  return false;
}

bool looks_like_a_model(const fs::path& folder) {
  return is_file(folder / "model.toml") || holds_a_model_file(folder) || highest_version(folder).has_value();
}

bool is_skipped(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.empty() || name.front() == '.' || name == "lost+found";
}

}  // namespace

Bytes weight_file_bytes(const ModelSpec& spec) {
  if (is_script(spec.path)) return largest_file(spec.directory);
  std::error_code error;
  const std::uintmax_t size = spec.path.empty() ? 0 : fs::file_size(spec.path, error);
  return error ? Bytes() : Bytes(size);
}

Result<ModelSpec> load_model_directory(const std::string& directory, const RouteChoice& choice) {
  if (!is_folder(directory)) return no_model(fmt::format("{} is not a folder", directory));
  const fs::path folder(directory);
  std::string text;
  if (is_file(folder / "model.toml")) {
    TONNAGE_ASSIGN(text, read_file(folder / "model.toml"));
  }
  TONNAGE_ASSIGN(ModelSpec spec, parse_model_toml(text, directory));
  if (!choice.route.empty()) spec.route = choice.route;
  if (choice.precision) spec.precision = *choice.precision;

  fs::path version_folder = folder;
  if (const auto version = highest_version(folder)) {
    spec.version = fmt::format("{}", *version);
    version_folder /= spec.version;
  }
  spec.directory = version_folder.string();
  TONNAGE_TRY(find_model_file(version_folder, spec));
  if (is_file(version_folder / kHeldOut)) spec.held_out = (version_folder / kHeldOut).string();
  if (spec.route == "stub" && spec.inputs.empty()) {
    return invalid("bad_config", fmt::format("{}/model.toml: a stub has no file that could name its inputs; "
                                             "write [[input]]",
                                             directory));
  }
  if (spec.tokenizer && !is_file(spec.tokenizer->vocab)) {
    return invalid("bad_config", fmt::format("{}/model.toml: 'tokenizer.vocab' is {}, which is not a file",
                                             directory, spec.tokenizer->vocab));
  }
  return spec;
}

Result<std::vector<RepositoryEntry>> scan_repository(const std::string& root, const RouteChoice& choice) {
  if (!is_folder(root)) return no_model(fmt::format("{} is not a folder", root));
  std::vector<RepositoryEntry> entries;
  if (looks_like_a_model(root)) {
    entries.push_back({root, load_model_directory(root, choice)});
    return entries;
  }
  for (const fs::path& child : children(root)) {
    // A folder without anything of a model (texts, notes) is not a broken model.
    if (!is_folder(child) || is_skipped(child) || !looks_like_a_model(child)) continue;
    entries.push_back({child.string(), load_model_directory(child.string(), choice)});
  }
  if (entries.empty()) {
    return no_model(
        fmt::format("{} holds no model: expected MODEL/model.toml, MODEL/VERSION/model.pt, or both", root));
  }
  return entries;
}

}  // namespace tonnage::model
