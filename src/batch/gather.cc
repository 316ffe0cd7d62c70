// SPDX-License-Identifier: Apache-2.0
#include "batch/gather.h"

#include <fmt/format.h>

#include <cstring>
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

// The dims of one row: those of the spec without the row dim, free ones set to `length`.
std::vector<std::int64_t> row_dims(const model::TensorSpec& input, std::uint32_t length) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 1; i < input.dims.size(); ++i) {
    dims.push_back(input.dims[i] < 0 ? std::int64_t{length} : input.dims[i]);
  }
  return dims;
}

// Writes the rows of one input, each into its own padded block of `row_bytes`.
class InputWriter {
 public:
  InputWriter(const model::ModelSpec& spec, std::size_t index, std::uint32_t padded_length)
      : spec_(spec),
        index_(index),
        input_(spec.inputs[index]),
        padded_dims_(row_dims(input_, padded_length)),
        pad_(detail::make_element(input_.type, input_.pad_value)) {}

  Status write(const RowRef& row, MutableByteView target) const {
    const auto& sent = row.request->inputs[index_];
    const std::uint32_t length = row.request->row_length(row.row);
    if (!sent) return write_mask(length, target);
    return write_sent(sent->row(row.row), length, target);
  }

 private:
  Status write_sent(ByteView bytes, std::uint32_t length, MutableByteView target) const {
    if (Bytes(bytes.size()) != spec_.input_row_bytes(index_, length)) {
      return internal("bad_row", fmt::format("input '{}' holds {} bytes for a row of length {}", input_.name,
                                             bytes.size(), length));
    }
    const std::vector<std::int64_t> dims = row_dims(input_, length);
    if (!tensor::is_prefix(dims, padded_dims_)) {
      detail::fill(target, pad_);
      tensor::copy_block({bytes, dims}, {target, padded_dims_}, pad_.size);
      return Status::ok();
    }
    if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
    detail::fill(target.subspan(bytes.size()), pad_);
    return Status::ok();
  }

  Status write_mask(std::uint32_t length, MutableByteView target) const {
    if (input_.source != model::InputSource::kMask) {
      return internal("bad_row", fmt::format("a request without input '{}' reached a batch", input_.name));
    }
    const detail::Element one = detail::make_element(input_.type, 1);
    detail::fill(target, detail::make_element(input_.type, 0));
    const std::vector<std::int64_t> own = row_dims(input_, length);
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

Status check_rows(const model::ModelSpec& spec, std::span<const RowRef> rows, std::uint32_t padded_length) {
  for (const RowRef& row : rows) {
    const std::uint32_t length = row.request->row_length(row.row);
    if (length > padded_length || row.row >= row.request->rows) {
      return internal("bad_row", fmt::format("row {} of length {} in a batch padded to {}", row.row, length,
                                             padded_length));
    }
    if (row.request->inputs.size() != spec.inputs.size()) {
      return internal("bad_row", "a request has another number of inputs than its model");
    }
  }
  return Status::ok();
}

// Elements of type BYTES have no padded size: rows lie behind each other, missing elements are empty.
Result<std::size_t> write_strings(const model::TensorSpec& input, std::size_t index,
                                  std::pair<std::span<const RowRef>, std::uint32_t> batch,
                                  MutableByteView target) {
  const auto [rows, padded_length] = batch;
  const std::vector<std::int64_t> padded = row_dims(input, padded_length);
  std::size_t used = 0;
  for (const RowRef& row : rows) {
    const auto& sent = row.request->inputs[index];
    if (!sent)
      return internal("bad_row", fmt::format("a request without input '{}' reached a batch", input.name));
    const auto laid = tensor::reshape_strings(
        {sent->row(row.row), row_dims(input, row.request->row_length(row.row))}, padded);
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

Bytes layout_bytes(const model::ModelSpec& spec, std::uint32_t rows, std::uint32_t padded_length) {
  Bytes total;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    total += round_up(spec.input_row_bytes(i, padded_length) * rows, kAlignment);
  }
  return total;
}

Bytes output_bytes(const model::ModelSpec& spec, std::uint32_t rows, std::uint32_t padded_length) {
  return spec.output_row_bytes(padded_length) * rows + kAlignment * spec.outputs.size();
}

Result<std::vector<wire::TensorLayout>> gather(const model::ModelSpec& spec, std::span<const RowRef> rows,
                                               std::uint32_t padded_length, MutableByteView slot) {
  TONNAGE_TRY(check_rows(spec, rows, padded_length));
  std::vector<wire::TensorLayout> layouts;
  layouts.reserve(spec.inputs.size());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const model::TensorSpec& input = spec.inputs[i];
    std::vector<std::int64_t> dims = row_dims(input, padded_length);
    dims.insert(dims.begin(), static_cast<std::int64_t>(rows.size()));
    TONNAGE_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
    std::size_t bytes = 0;
    if (input.type == DataType::kBytes) {
      if (offset > slot.size()) return slot_too_small(Bytes(offset), slot.size());
      TONNAGE_ASSIGN(bytes, write_strings(input, i, {rows, padded_length}, slot.subspan(offset)));
    } else {
      bytes = shape.bytes_of(input.type).size();
      if (!fits_inside(offset, bytes, slot.size()))
        return slot_too_small(Bytes(offset) + Bytes(bytes), slot.size());
      const InputWriter writer(spec, i, padded_length);
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
