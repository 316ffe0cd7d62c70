// SPDX-License-Identifier: Apache-2.0
// What the generator must know of a model, from the metadata that the server gives to any client.
// Fails with: invalid_argument/bad_metadata.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tonnage::load {

struct InputInfo {
  std::string name;
  std::string datatype;
  std::uint32_t element_bytes = 0;  // 0: BYTES
  std::vector<std::int64_t> shape;  // −1: free; the first is the row dim

  bool is_text() const { return datatype == "BYTES"; }
  bool is_mask() const { return name.find("mask") != std::string::npos; }
};

struct ModelInfo {
  std::string name;
  std::vector<InputInfo> inputs;
  std::vector<std::string> outputs;
};

// Body of GET /v2/models/NAME.
Result<ModelInfo> parse_model_info(std::string_view json);
// Body of GET /v2/models: {"models": […]}.
Result<std::vector<std::string>> parse_model_names(std::string_view json);

}  // namespace tonnage::load
