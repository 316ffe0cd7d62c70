// SPDX-License-Identifier: Apache-2.0
#include "request/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/bug.h"
#include "tensor/block.h"
#include "tensor/strings.h"

namespace tonnage::request {
namespace {

constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxPadding = 8;  // padded row ÷ largest row of the request
constexpr std::uint8_t kOpen = 0;
constexpr std::uint8_t kPut = 1;
constexpr std::uint8_t kFailed = 2;

tensor::Buffer copy_of(ByteView bytes) {
  tensor::Buffer buffer(bytes.size());
  std::copy_n(bytes.data(), bytes.size(), buffer.mutable_view().data());  // one memmove
  return buffer;
}

bool holds_its_shape(const RowOutput& output) {
  if (output.type == tensor::DataType::kBytes) {
    return tensor::strings_size(output.bytes, output.shape.elements()) == output.bytes.size();
  }
  return output.shape.bytes_of(output.type).count() == output.bytes.size();
}

}  // namespace

Assembly::Assembly(std::uint32_t rows, std::vector<std::string> output_names)
    : names_(std::move(output_names)),
      slots_(rows * names_.size()),
      state_(rows, kOpen),
      open_(rows),
      failed_row_(kNoRow) {}

bool Assembly::is_row_open(std::uint32_t row) const { return row < state_.size() && state_[row] == kOpen; }

void Assembly::put(std::uint32_t row, std::span<const RowOutput> outputs) {
  if (!is_row_open(row)) {
    TONNAGE_BUG("a row was answered twice");
    return;
  }
  if (outputs.size() != names_.size() || !std::ranges::all_of(outputs, holds_its_shape)) {
    return fail(row, internal("bad_output", "the outputs do not have the shape that they claim"));
  }
  state_[row] = kPut;
  --open_;
  if (failed_row_ != kNoRow) return;  // the request fails anyway; its other rows are not kept
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Slot& slot = slots_[row * names_.size() + i];
    slot.type = outputs[i].type;
    slot.shape = outputs[i].shape;
    slot.data = copy_of(outputs[i].bytes);
  }
}

void Assembly::fail(std::uint32_t row, Status status) {
  if (!is_row_open(row)) {
    TONNAGE_BUG("a row was answered twice");
    return;
  }
  state_[row] = kFailed;
  --open_;
  if (row >= failed_row_) return;
  failed_row_ = row;
  const std::optional<int> retry_after = status.retry_after_seconds();
  failure_ = Status(status.code(), status.reason(), fmt::format("row {}: {}", row, status.detail()));
  if (retry_after) failure_ = std::move(failure_).with_retry_after(*retry_after);
}

Result<OutputTensor> Assembly::join(std::size_t output) {
  const std::size_t rows = state_.size();
  const auto slot_of = [&](std::size_t row) -> Slot& { return slots_[row * names_.size() + output]; };
  const Slot& first = slot_of(0);
  std::vector<std::int64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  std::uint64_t largest = first.shape.elements();
  for (std::size_t row = 1; row < rows; ++row) {
    const Slot& slot = slot_of(row);
    if (slot.type != first.type || slot.shape.rank() != first.shape.rank()) {
      return internal(
          "bad_output",
          fmt::format("output '{}' has another type or rank in row {} than in row 0", names_[output], row));
    }
    for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = std::max(dims[i], slot.shape.dim(i));
    largest = std::max(largest, slot.shape.elements());
  }
  OutputTensor joined{names_[output], first.type, {}, {}};
  std::vector<std::int64_t> all = dims;
  all.insert(all.begin(), static_cast<std::int64_t>(rows));
  TONNAGE_ASSIGN(joined.shape, tensor::Shape::make(all));
  // A worker that answers [1, 10⁶] for one row and [10⁶, 1] for the next does not get 10¹² elements.
  if (joined.shape.elements() / rows > std::max<std::uint64_t>(largest, 1) * kMaxPadding) {
    return internal("bad_output", fmt::format("the rows of output '{}' do not fit into one tensor {}",
                                              names_[output], joined.shape.to_string()));
  }
  if (rows == 1) {
    joined.data = std::move(slot_of(0).data);
  } else if (joined.type == tensor::DataType::kBytes) {
    joined.data = join_strings(output, dims);
  } else {
    joined.data = join_elements(output, dims);
  }
  return joined;
}

tensor::Buffer Assembly::join_elements(std::size_t output, std::span<const std::int64_t> dims) {
  std::size_t row_bytes = tensor::element_size(slots_[output].type);
  for (const std::int64_t dim : dims) row_bytes *= static_cast<std::size_t>(dim);
  tensor::Buffer all(row_bytes * state_.size());
  for (std::size_t row = 0; row < state_.size(); ++row) {
    const Slot& slot = slots_[row * names_.size() + output];
    const MutableByteView target = all.mutable_view().subspan(row * row_bytes, row_bytes);
    if (slot.data.size() < row_bytes) std::ranges::fill(target, std::byte{0});
    tensor::copy_block({slot.data.view(), slot.shape.dims()}, {target, dims},
                       tensor::element_size(slot.type));
  }
  return all;
}

tensor::Buffer Assembly::join_strings(std::size_t output, std::span<const std::int64_t> dims) {
  std::vector<std::byte> all;
  for (std::size_t row = 0; row < state_.size(); ++row) {
    const Slot& slot = slots_[row * names_.size() + output];
    const auto laid = tensor::reshape_strings({slot.data.view(), slot.shape.dims()}, dims);
    TONNAGE_CHECK(laid.has_value(), "strings were proven when the row was put");
    all.insert(all.end(), laid->begin(), laid->end());
  }
  return copy_of(all);
}

Result<std::vector<OutputTensor>> Assembly::finish() {
  if (open_ != 0 || state_.empty()) {
    TONNAGE_BUG("an assembly was finished before its rows were");
    return internal("incomplete", "not every row was answered");
  }
  if (failed_row_ != kNoRow) return failure_;
  std::vector<OutputTensor> outputs;
  outputs.reserve(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    TONNAGE_ASSIGN(OutputTensor joined, join(i));
    outputs.push_back(std::move(joined));
  }
  return outputs;
}

}  // namespace tonnage::request
