// SPDX-License-Identifier: Apache-2.0
// From the tensors that a decoder found to a proven Request: the rules that all dialects share.
//
// Rules: every input has the rank and the fixed dims of the spec; rows and length agree between inputs;
// rows ≥ 1, and length ≥ 1 where the model has a free dim; more rows than max_rows_per_request or more
// positions than max_length are refused, or cut where the model says too_long = truncate.
// Threads: pure functions. Fails with: invalid_argument/{bad_shape, no_rows, zero_length, missing_input,
// rows_differ, lengths_differ, value_range}, too_large/{too_long, too_many_rows}.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "model/spec.h"
#include "request/request.h"
#include "tensor/shape.h"

namespace tonnage::codec {

struct SentInput {
  tensor::Shape shape;
  request::RowsTensor values;
};

// What one input's shape must fulfil on its own; before any of its data is looked at.
Status check_shape(const model::ModelSpec& spec, const model::TensorSpec& input, const tensor::Shape& shape);
Status check_row_count(const model::ModelSpec& spec, std::uint64_t rows);
Status check_length(const model::ModelSpec& spec, const model::TensorSpec& input, std::uint64_t length);
// Fills rows, length and inputs of `request`; `sent` has one entry per input of the spec.
Status settle(const model::ModelSpec& spec, std::vector<std::optional<SentInput>> sent,
              request::Request& request);

}  // namespace tonnage::codec
