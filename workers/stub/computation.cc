// SPDX-License-Identifier: Apache-2.0
#include "stub/computation.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "stub/elements.h"

namespace tonnage::stub {
namespace {

using tensor::DataType;

const wire::TensorDoc kIds{"ids", DataType::kInt64, {-1, -1}};
const wire::TensorDoc kMask{"mask", DataType::kInt64, {-1, -1}};

std::vector<wire::TensorDoc> own_inputs(Computation computation) {
  switch (computation) {
    case Computation::kEcho: return {{"x", DataType::kFp32, {-1, -1}}};
    case Computation::kMaskedMean: return {{"values", DataType::kFp32, {-1, -1}}, kMask};
    case Computation::kSum: return {kIds};
  }
  return {};
}

bool has_numbers(const wire::TensorDoc& tensor) {
  return tensor.type <= DataType::kInt64 || tensor.type == DataType::kFp32 || tensor.type == DataType::kFp64;
}

bool can_compute(Computation computation, const std::vector<wire::TensorDoc>& inputs) {
  if (computation == Computation::kEcho) return inputs.size() == 1;
  for (const wire::TensorDoc& input : inputs) {
    if (!has_numbers(input) || input.dims.size() != 2) return false;
  }
  return computation == Computation::kMaskedMean ? inputs.size() == 2
                                                 : inputs.size() == 1 || inputs.size() == 2;
}

std::string first_output_name(const wire::LoadDoc& doc, std::string_view otherwise) {
  return doc.outputs.empty() ? std::string(otherwise) : doc.outputs[0].name;
}

// Elements of row `row` of a [rows, length] tensor.
template <typename T>
std::span<const T> row_of(std::span<const T> all, std::size_t row, std::size_t rows) {
  const std::size_t length = all.size() / rows;
  return all.subspan(row * length, length);
}

struct RowSum {
  double sum = 0;
  double weight = 0;
};

// Per row: Σ value × mask and Σ mask; without a mask every weight is one.
std::vector<RowSum> weighted_sums(const kit::Tensor& values, const kit::Tensor* mask, std::size_t rows) {
  std::vector<double> weights(values.shape.elements(), 1.0);
  if (mask != nullptr) {
    visit_elements(*mask, [&](auto elements) {
      for (std::size_t i = 0; i < std::min(weights.size(), elements.size()); ++i) {
        weights[i] = static_cast<double>(elements[i]);
      }
    });
  }
  std::vector<RowSum> sums(rows);
  visit_elements(values, [&](auto elements) {
    for (std::size_t row = 0; row < rows; ++row) {
      const auto own = row_of(elements, row, rows);
      const auto own_weights = row_of(std::span<const double>(weights), row, rows);
      for (std::size_t i = 0; i < own.size(); ++i) {
        sums[row].sum += static_cast<double>(own[i]) * own_weights[i];
        sums[row].weight += own_weights[i];
      }
    }
  });
  return sums;
}

}  // namespace

Result<wire::LoadedDoc> describe(Computation computation, const wire::LoadDoc& doc) {
  wire::LoadedDoc loaded{.runtime = "stub"};
  loaded.inputs = doc.inputs.empty() ? own_inputs(computation) : doc.inputs;
  if (!can_compute(computation, loaded.inputs)) {
    return invalid(
        "bad_spec",
        "echo takes one input; masked_mean takes values and mask, every other stub model takes ids "
        "and perhaps a mask, all of rank 2 and of an integer type, BOOL, FP32 or FP64");
  }
  if (computation == Computation::kEcho) {
    const wire::TensorDoc& x = loaded.inputs[0];
    loaded.outputs = {{first_output_name(doc, "y"), x.type, x.dims}};
  } else {
    const auto name = computation == Computation::kMaskedMean ? "mean" : "sum";
    loaded.outputs = {{first_output_name(doc, name), DataType::kFp32, {-1, 1}}};
  }
  return loaded;
}

std::vector<kit::Tensor> compute(Computation computation, const kit::RunView& view,
                                 CountingAllocator& allocator, std::vector<Block>& memory) {
  if (computation == Computation::kEcho) return {view.inputs[0]};
  const kit::Tensor* const mask = view.inputs.size() > 1 ? &view.inputs[1] : nullptr;
  const auto sums = weighted_sums(view.inputs[0], mask, view.rows);
  memory.push_back(allocator.allocate(Bytes(view.rows * sizeof(float))));
  const std::span<float> out = as_elements<float>(memory.back().bytes());
  for (std::size_t row = 0; row < sums.size(); ++row) {
    // Zero over zero is NaN on purpose: what a model does with a row that is all padding.
    const double value =
        computation == Computation::kMaskedMean ? sums[row].sum / sums[row].weight : sums[row].sum;
    out[row] = static_cast<float>(value);
  }
  const std::array<std::int64_t, 2> dims = {std::int64_t{view.rows}, 1};
  return {{DataType::kFp32, tensor::Shape::make(dims).value(), std::as_const(memory.back()).bytes()}};
}

}  // namespace tonnage::stub
