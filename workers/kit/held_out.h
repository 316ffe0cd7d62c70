// SPDX-License-Identifier: Apache-2.0
// HeldOut: rows with the answers that a model must give, as the exporter writes them (held_out.json).
//
// Promises: what read_held_out returns is complete: every row has all inputs and outputs, with as many
// values as their shape at its length has elements. Outputs that are not FP32 carry no values.
// Fails with: invalid_argument/bad_held_out (the detail names file and row).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kit/tensor.h"
#include "tensor/buffer.h"
#include "wire/load_doc.h"

namespace tonnage::kit {

struct HeldOutTensor {
  std::string name{};
  tensor::DataType type = tensor::DataType::kFp32;
  std::vector<std::int64_t> dims{};  // −1: rows first, then length
  std::int64_t pad = 0;
  std::optional<wire::ValueRange> range{};  // of an input, as its spec says

  // For `rows` rows padded to `length`.
  std::vector<std::int64_t> dims_at(std::uint32_t rows, std::uint32_t length) const;
};

struct HeldOutRow {
  std::uint32_t length = 0;  // 0 where the model has no free dim
  std::vector<tensor::Buffer> inputs{};
  std::vector<std::vector<float>> outputs{};
};

struct HeldOut {
  std::vector<HeldOutTensor> inputs{};
  std::vector<HeldOutTensor> outputs{};
  std::vector<HeldOutRow> rows{};
};

Result<HeldOut> read_held_out(const std::string& path);
Result<HeldOut> parse_held_out(std::string_view json);

// Rows of pseudo-random values inside the ranges (a range of [0, 1] is taken for a mask and filled with
// ones), of lengths from 1 on, without answers; for runtimes that can compute these themselves.
HeldOut draw_held_out(const wire::LoadDoc& doc, std::uint32_t longest);

// Puts inputs and outputs in the order of the specs and takes over their ranges; an empty list leaves them
// as they are.
Status put_in_order(HeldOut& held_out, std::span<const wire::TensorDoc> inputs,
                    std::span<const wire::TensorDoc> outputs);

// A padded batch of some rows. `into` owns the bytes of the returned tensors.
std::vector<Tensor> gather(const HeldOut& held_out, std::span<const std::size_t> rows, std::uint32_t length,
                           std::vector<tensor::Buffer>& into);

}  // namespace tonnage::kit
