// SPDX-License-Identifier: Apache-2.0
#include "batch/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "batch/detail/pad.h"
#include "tensor/block.h"
#include "tensor/buffer.h"
#include "tensor/strings.h"

namespace tonnage::batch {
namespace {

using tensor::DataType;
constexpr Bytes kAlignment{tensor::kAlignment};

// The dims of one row: those of the spec without the row dim, free ones set to the row's size.
std::vector<std::int64_t> row_dims(const model::TensorSpec& input, const model::RowSize& size) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 1; i < input.dims.size(); ++i) dims.push_back(input.dim_for(i, size));
  return dims;
}

std::string size_text(const model::ModelSpec& spec, const model::RowSize& size) {
  std::string text;
  for (std::size_t i = 0; i < std::max<std::size_t>(spec.sizes.size(), 1); ++i) {
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", spec.size_name(i), size.at.at(i));
  }
  return text;
}

// Writes the rows of one input, each into its own padded block of `row_bytes`.
class InputWriter {
 public:
  InputWriter(const model::ModelSpec& spec, std::size_t index, const model::RowSize& padded)
      : spec_(spec),
        index_(index),
        input_(spec.inputs[index]),
        padded_dims_(row_dims(input_, padded)),
        pad_(detail::make_element(input_.type, input_.pad_value)) {}

  Status write(const RowRef& row, MutableByteView target) const {
    const auto& sent = row.request->inputs[index_];
    const model::RowSize size = row.request->row_size(row.row);
    if (!sent) return write_mask(size, target);
    return write_sent(sent->row(row.row), size, target);
  }

 private:
  Status write_sent(ByteView bytes, const model::RowSize& size, MutableByteView target) const {
    if (Bytes(bytes.size()) != spec_.input_row_bytes(index_, size)) {
      return internal("bad_row", fmt::format("input '{}' holds {} bytes for a row of {}", input_.name,
                                             bytes.size(), size_text(spec_, size)));
    }
    const std::vector<std::int64_t> dims = row_dims(input_, size);
    if (!tensor::is_prefix(dims, padded_dims_)) {
      detail::fill(target, pad_);
      tensor::copy_block({bytes, dims}, {target, padded_dims_}, pad_.size);
      return Status::ok();
    }
    if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
    detail::fill(target.subspan(bytes.size()), pad_);
    return Status::ok();
  }

  Status write_mask(const model::RowSize& size, MutableByteView target) const {
    if (input_.source != model::InputSource::kMask) {
      return internal("bad_row", fmt::format("a request without input '{}' reached a batch", input_.name));
    }
    const detail::Element one = detail::make_element(input_.type, 1);
    detail::fill(target, detail::make_element(input_.type, 0));
    const std::vector<std::int64_t> own = row_dims(input_, size);
    tensor::for_each_run(own, padded_dims_, [&](std::size_t, std::size_t at, std::size_t count) {
      detail::fill(target.subspan(at * one.size, count * one.size), one);
    });
    return Status::ok();
  }

  const model::ModelSpec& spec_;
  std::size_t index_;
  const model::TensorSpec& input_;
  std::vector<std::int64_t> padded_dims_;
  detail::Element pad_;
};

Status slot_too_small(Bytes needed, std::size_t slot) {
  return internal("slot_too_small",
                  fmt::format("the batch needs {} bytes, the slot has {}", needed.count(), slot));
}

Status check_rows(const model::ModelSpec& spec, std::span<const RowRef> rows, const model::RowSize& padded) {
  for (const RowRef& row : rows) {
    const model::RowSize size = row.request->row_size(row.row);
    const bool fits = std::ranges::equal(size.at, padded.at, std::less_equal<>());
    if (!fits || row.row >= row.request->rows) {
      return internal("bad_row", fmt::format("row {} of {} in a batch padded to {}", row.row,
                                             size_text(spec, size), size_text(spec, padded)));
    }
    if (row.request->inputs.size() != spec.inputs.size()) {
      return internal("bad_row", "a request has another number of inputs than its model");
    }
  }
  return Status::ok();
}

// Elements of type BYTES have no padded size: rows lie behind each other, missing elements are empty.
Result<std::size_t> write_strings(const model::TensorSpec& input, std::size_t index,
                                  std::pair<std::span<const RowRef>, model::RowSize> batch,
                                  MutableByteView target) {
  const auto& [rows, padded_size] = batch;
  const std::vector<std::int64_t> padded = row_dims(input, padded_size);
  std::size_t used = 0;
  for (const RowRef& row : rows) {
    const auto& sent = row.request->inputs[index];
    if (!sent)
      return internal("bad_row", fmt::format("a request without input '{}' reached a batch", input.name));
    const auto laid = tensor::reshape_strings(
        {sent->row(row.row), row_dims(input, row.request->row_size(row.row))}, padded);
    if (!laid) return internal("bad_row", fmt::format("input '{}' holds malformed strings", input.name));
    if (!fits_inside(used, laid->size(), target.size())) {
      return slot_too_small(Bytes(used + laid->size()), target.size());
    }
    if (!laid->empty()) std::memcpy(target.data() + used, laid->data(), laid->size());
    used += laid->size();
  }
  return used;
}

}  // namespace

model::RowSize padded_size(const model::ModelSpec& spec, std::span<const RowRef> rows,
                           std::uint32_t padded_length) {
  if (spec.sizes.empty()) return padded_length;
  model::RowSize padded;
  for (const RowRef& row : rows) {
    const model::RowSize size = spec.padded_size(row.request->row_size(row.row));
    for (std::size_t i = 0; i < size.at.size(); ++i) padded.at[i] = std::max(padded.at[i], size.at[i]);
  }
  return padded;
}

Bytes layout_bytes(const model::ModelSpec& spec, std::uint32_t rows, const model::RowSize& padded) {
  Bytes total;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    total += round_up(spec.input_row_bytes(i, padded) * rows, kAlignment);
  }
  return total;
}

Bytes output_bytes(const model::ModelSpec& spec, std::uint32_t rows, const model::RowSize& padded) {
  return spec.output_row_bytes(padded) * rows + kAlignment * spec.outputs.size();
}

Result<std::vector<wire::TensorLayout>> gather(const model::ModelSpec& spec, std::span<const RowRef> rows,
                                               const model::RowSize& padded, MutableByteView slot) {
  TONNAGE_TRY(check_rows(spec, rows, padded));
  std::vector<wire::TensorLayout> layouts;
  layouts.reserve(spec.inputs.size());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const model::TensorSpec& input = spec.inputs[i];
    std::vector<std::int64_t> dims = row_dims(input, padded);
    dims.insert(dims.begin(), static_cast<std::int64_t>(rows.size()));
    TONNAGE_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
    std::size_t bytes = 0;
    if (input.type == DataType::kBytes) {
      if (offset > slot.size()) return slot_too_small(Bytes(offset), slot.size());
      TONNAGE_ASSIGN(bytes, write_strings(input, i, {rows, padded}, slot.subspan(offset)));
    } else {
      bytes = shape.bytes_of(input.type).size();
      if (!fits_inside(offset, bytes, slot.size()))
        return slot_too_small(Bytes(offset) + Bytes(bytes), slot.size());
      const InputWriter writer(spec, i, padded);
      const std::size_t row_bytes = rows.empty() ? 0 : bytes / rows.size();
      for (std::size_t r = 0; r < rows.size(); ++r) {
        TONNAGE_TRY(writer.write(rows[r], slot.subspan(offset + r * row_bytes, row_bytes)));
      }
    }
    layouts.push_back({input.type, shape, offset, bytes});
    offset += tensor::align_up(bytes);
  }
  return layouts;
}

}  // namespace tonnage::batch
