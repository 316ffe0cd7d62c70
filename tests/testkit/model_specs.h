// SPDX-License-Identifier: Apache-2.0
// Small ModelSpecs for tests, as if parsed from a model.toml.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "model/spec.h"

namespace tonnage::testkit {

inline model::TensorSpec tensor_spec(std::string name, tensor::DataType type,
                                     std::vector<std::int64_t> dims) {
  model::TensorSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.dims = std::move(dims);
  return spec;
}

inline model::ModelSpec model_spec(std::string name, std::vector<model::TensorSpec> inputs,
                                   std::vector<model::TensorSpec> outputs) {
  model::ModelSpec spec;
  spec.name = std::move(name);
  spec.route = "stub";
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  for (const model::TensorSpec& input : spec.inputs) {
    if (input.has_length()) spec.max_length = 512;
  }
  return spec;
}

// ids [-1, -1] (0…30521) and a generated mask → scores [-1, 2].
inline model::ModelSpec encoder_spec() {
  model::TensorSpec ids = tensor_spec("input_ids", tensor::DataType::kInt64, {-1, -1});
  ids.range = model::ValueRange{0, 30521};
  model::TensorSpec mask = tensor_spec("attention_mask", tensor::DataType::kInt64, {-1, -1});
  mask.source = model::InputSource::kMask;
  mask.range = model::ValueRange{0, 1};
  return model_spec("encoder", {ids, mask}, {tensor_spec("scores", tensor::DataType::kFp32, {-1, 2})});
}

}  // namespace tonnage::testkit
