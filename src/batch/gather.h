// SPDX-License-Identifier: Apache-2.0
// gather: rows → one padded batch in a shared-memory slot. split (batch/split.h) is its inverse.
//
// Promises: every tensor lies inside the slot, aligned to 64; padding positions hold the spec's pad
// value; a generated mask is 1 exactly on a row's own positions. layout_bytes() is what gather needs.
// Threads: the loop. Fails with: internal/slot_too_small (the caller sized the slot wrongly).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/spans.h"
#include "base/status.h"
#include "model/spec.h"
#include "request/request.h"
#include "wire/messages.h"

namespace tonnage::batch {

struct RowRef {
  const request::Request* request = nullptr;
  std::uint32_t row = 0;
};

// What the rows of a batch planned at `padded_length` are padded to: that length, or in a model with sizes
// the largest padded size in each dim.
model::RowSize padded_size(const model::ModelSpec& spec, std::span<const RowRef> rows,
                           std::uint32_t padded_length);

Bytes layout_bytes(const model::ModelSpec& spec, std::uint32_t rows, const model::RowSize& padded);
// Output bytes that one batch may produce, by the spec.
Bytes output_bytes(const model::ModelSpec& spec, std::uint32_t rows, const model::RowSize& padded);

Result<std::vector<wire::TensorLayout>> gather(const model::ModelSpec& spec, std::span<const RowRef> rows,
                                               const model::RowSize& padded, MutableByteView slot);

}  // namespace tonnage::batch
