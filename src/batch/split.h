// SPDX-License-Identifier: Apache-2.0
// split: the outputs of a batch → one slice per row, by counts the server measured itself.
//
// Promises: the layouts, written by an untrusted worker, are proven against the region, the spec and
// the batch before anything is read; free output dims equal to what their size was padded to are cut
// to the row's own; a row with a non-finite float fails alone (bad_output/non_finite).
// Threads: the loop. Fails with: internal/bad_output (the whole batch).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/spans.h"
#include "base/status.h"
#include "model/spec.h"
#include "request/assembly.h"
#include "wire/messages.h"

namespace tonnage::batch {

// `region`: the bytes copied out of the output region. `sizes`: of the rows, in batch order.
// Proves layouts against spec.outputs, so many rows and the region.
Status check_outputs(const model::ModelSpec& spec, std::span<const wire::TensorLayout> outputs,
                     std::size_t rows, Bytes region_bytes);

struct SplitBatch {
  const model::ModelSpec& spec;
  std::span<const wire::TensorLayout> outputs;  // proven by check_outputs
  std::span<const model::RowSize> sizes;
  model::RowSize padded;
  ByteView region;
};

// Row i of the batch: outputs in the order of the spec, or why this row alone failed. Trimmed rows
// are copied into `scratch`, which the result's views may refer to.
Result<std::vector<request::RowOutput>> split_row(const SplitBatch& batch, std::uint32_t row,
                                                  std::vector<std::byte>& scratch);

}  // namespace tonnage::batch
