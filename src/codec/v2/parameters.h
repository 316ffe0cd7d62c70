// SPDX-License-Identifier: Apache-2.0
// The parameters of a V2 request, of its inputs and of its outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "codec/json/reader.h"
#include "model/spec.h"
#include "request/request.h"

namespace tonnage::codec::v2 {

struct RequestParameters {
  std::optional<Duration> timeout;
  std::uint8_t priority = 0;
  bool binary_output = false;
};
struct InputParameters {
  std::optional<std::uint64_t> binary_size;
};
struct OutputEntry {
  std::string name;
  std::optional<bool> binary;
  std::uint32_t classification = 0;
};

// Each reads the object in front of the reader. Keys that nobody knows are skipped; reserved ones
// (triton_…) are refused. Fails with: invalid_argument/{bad_parameter, reserved_parameter},
// unimplemented/{shared_memory, sequences}.
Status read_request_parameters(JsonReader& reader, RequestParameters& parameters);
Status read_input_parameters(JsonReader& reader, std::string_view input, InputParameters& parameters);
Status read_output_parameters(JsonReader& reader, OutputEntry& output);

// The strings of a tokenizer model: BYTES [-1, 1].
const model::TensorSpec& text_input();
// Proves the last of `outputs` against the spec and the ones before it.
Status check_output(const model::ModelSpec& spec, const std::vector<OutputEntry>& outputs);
// What is to be answered; outputs that JSON cannot carry must be asked for as binary.
Result<std::vector<request::OutputSelection>> select_outputs(const model::ModelSpec& spec,
                                                             const std::vector<OutputEntry>& outputs,
                                                             bool binary_by_default);

}  // namespace tonnage::codec::v2
