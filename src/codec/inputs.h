// SPDX-License-Identifier: Apache-2.0
// From the tensors that a decoder found to a proven Request: the rules that all dialects share.
//
// Rules: every input has the rank and the fixed dims of the spec; rows and length agree between inputs;
// rows ≥ 1, and length ≥ 1 where the model has a free dim; more rows than max_rows_per_request or more
// positions than max_length are refused, or cut where the model says too_long = truncate. Of a model with
// sizes each size is checked like the length.
// Threads: pure functions. Fails with: invalid_argument/{bad_shape, no_rows, zero_length, missing_input,
// rows_differ, lengths_differ, value_range}, too_large/{too_long, too_many_rows}.
#pragma once

#include <array>
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
// `value`: of the model's size number `size`, or the length where it has none.
Status check_size(const model::ModelSpec& spec, const model::TensorSpec& input, std::size_t size,
                  std::uint64_t value);
// What free dims said so far.
using SentSize = std::array<std::optional<std::uint64_t>, model::kMaxSizes>;
// Of a size that was checked. The length that is scheduled: of the size as it will be padded.
model::RowSize row_size(const SentSize& sent);
std::uint32_t scheduled_length(const model::ModelSpec& spec, const model::RowSize& size);
// Fills rows, length and inputs of `request`; `sent` has one entry per input of the spec.
Status settle(const model::ModelSpec& spec, std::vector<std::optional<SentInput>> sent,
              request::Request& request);

}  // namespace tonnage::codec
