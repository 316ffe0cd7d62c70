// SPDX-License-Identifier: Apache-2.0
#include "load/model_info.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace tonnage::load {
namespace {

using Json = nlohmann::json;

Status bad(std::string_view what, std::string_view json) {
  return invalid("bad_metadata", fmt::format("the server's metadata {}: {}", what, json.substr(0, 120)));
}

Result<std::uint32_t> element_bytes(std::string_view datatype, std::string_view json) {
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 14> kTypes = {{{"BOOL", 1},
                                                                                  {"UINT8", 1},
                                                                                  {"INT8", 1},
                                                                                  {"UINT16", 2},
                                                                                  {"INT16", 2},
                                                                                  {"FP16", 2},
                                                                                  {"BF16", 2},
                                                                                  {"UINT32", 4},
                                                                                  {"INT32", 4},
                                                                                  {"FP32", 4},
                                                                                  {"UINT64", 8},
                                                                                  {"INT64", 8},
                                                                                  {"FP64", 8},
                                                                                  {"BYTES", 0}}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == datatype) return bytes;
  }
  return bad("names an unknown datatype", json);
}

Result<InputInfo> parse_input(const Json& value, std::string_view json) {
  if (!value.is_object() || !value.value("name", Json()).is_string() ||
      !value.value("datatype", Json()).is_string() || !value.value("shape", Json()).is_array()) {
    return bad("describes an input without name, datatype and shape", json);
  }
  InputInfo input;
  input.name = value["name"].get<std::string>();
  input.datatype = value["datatype"].get<std::string>();
  TONNAGE_ASSIGN(input.element_bytes, element_bytes(input.datatype, json));
  for (const Json& dim : value["shape"]) {
    if (!dim.is_number_integer()) return bad("has a dim that is no integer", json);
    input.shape.push_back(dim.get<std::int64_t>());
  }
  return input;
}

}  // namespace

Result<ModelInfo> parse_model_info(std::string_view json) {
  const Json value = Json::parse(json, nullptr, false);
  if (!value.is_object() || !value.value("name", Json()).is_string() ||
      !value.value("inputs", Json()).is_array()) {
    return bad("has no name or inputs", json);
  }
  ModelInfo info;
  info.name = value["name"].get<std::string>();
  for (const Json& entry : value["inputs"]) {
    TONNAGE_ASSIGN(InputInfo input, parse_input(entry, json));
    info.inputs.push_back(std::move(input));
  }
  for (const Json& entry : value.value("outputs", Json::array())) {
    if (entry.is_object() && entry.value("name", Json()).is_string()) {
      info.outputs.push_back(entry["name"].get<std::string>());
    }
  }
  if (info.inputs.empty()) return bad("names no inputs", json);
  return info;
}

Result<std::vector<std::string>> parse_model_names(std::string_view json) {
  const Json value = Json::parse(json, nullptr, false);
  std::vector<std::string> names;
  if (!value.is_object() || !value.value("models", Json()).is_array()) return bad("lists no models", json);
  for (const Json& name : value["models"]) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

}  // namespace tonnage::load
