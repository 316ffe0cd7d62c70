// SPDX-License-Identifier: Apache-2.0
#include "batch/split.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "tensor/block.h"
#include "tensor/buffer.h"
#include "tensor/strings.h"

namespace tonnage::batch {
namespace {

using tensor::DataType;

Status bad_output(const model::TensorSpec& output, std::string detail) {
  return internal("bad_output", fmt::format("output '{}': {}", output.name, detail));
}

Status check_dims(const model::ModelSpec& spec, const model::TensorSpec& output, const tensor::Shape& shape,
                  std::size_t rows) {
  if (shape.rank() != output.dims.size()) {
    return bad_output(output, fmt::format("rank {}, the model says {}", shape.rank(), output.dims.size()));
  }
  if (shape.rank() == 0 || shape.dim(0) != static_cast<std::int64_t>(rows)) {
    return bad_output(output, fmt::format("shape {} for a batch of {} rows", shape.to_string(), rows));
  }
  for (std::size_t i = 1; i < shape.rank(); ++i) {
    const std::int64_t wanted = output.dims[i];
    if (wanted >= 0 && shape.dim(i) != wanted) {
      return bad_output(output, fmt::format("dim {} is {}, the model says {}", i, shape.dim(i), wanted));
    }
    // Every account above was sized with the largest row for a free dim.
    const std::int64_t most = spec.has_length() ? spec.largest(output.size_of(i)) : 0;
    if (wanted < 0 && spec.has_length() && shape.dim(i) > most) {
      return bad_output(output, fmt::format("dim {} is {}, above the largest {} {}", i, shape.dim(i),
                                            spec.size_name(output.size_of(i)), most));
    }
  }
  return Status::ok();
}

Status check_place(const model::TensorSpec& output, const wire::TensorLayout& layout, Bytes region) {
  if (layout.offset % tensor::kAlignment != 0) {
    return bad_output(output,
                      fmt::format("offset {} is not aligned to {}", layout.offset, tensor::kAlignment));
  }
  if (!fits_inside(layout.offset, layout.bytes, region.count())) {
    return bad_output(output, fmt::format("{} bytes at {} leave the region of {}", layout.bytes,
                                          layout.offset, region.count()));
  }
  const std::uint64_t least = output.type == DataType::kBytes
                                  ? layout.shape.elements() * sizeof(std::uint32_t)
                                  : layout.shape.bytes_of(output.type).count();
  if (output.type == DataType::kBytes ? layout.bytes < least : layout.bytes != least) {
    return bad_output(output, fmt::format("{} bytes for shape {}", layout.bytes, layout.shape.to_string()));
  }
  return Status::ok();
}

template <typename Word>
bool has_word_with_all_of(ByteView bytes, Word exponent) {
  bool found = false;
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    found |= (word & exponent) == exponent;  // no early exit, so that the loop vectorises
  }
  return found;
}

// NaN and infinities are the values whose exponent bits are all set.
bool has_non_finite(DataType type, ByteView bytes) {
  switch (type) {
    case DataType::kFp64: return has_word_with_all_of<std::uint64_t>(bytes, 0x7ff0000000000000ULL);
    case DataType::kFp32: return has_word_with_all_of<std::uint32_t>(bytes, 0x7f800000U);
    case DataType::kFp16: return has_word_with_all_of<std::uint16_t>(bytes, 0x7c00U);
    case DataType::kBf16: return has_word_with_all_of<std::uint16_t>(bytes, 0x7f80U);
    default: return false;
  }
}

// One output of one row, before and after trimming.
struct Slice {
  ByteView bytes;  // untrimmed
  std::array<std::int64_t, tensor::kMaxRank> padded{};
  std::array<std::int64_t, tensor::kMaxRank> own{};
  std::size_t rank = 0;
  std::vector<std::byte> strings;  // of a trimmed BYTES row

  tensor::Dims padded_dims() const { return {padded.data(), rank}; }
  tensor::Dims own_dims() const { return {own.data(), rank}; }
};

std::optional<ByteView> row_bytes(const wire::TensorLayout& layout, ByteView region, std::uint32_t row) {
  const ByteView all = region.subspan(layout.offset, layout.bytes);
  const auto rows = static_cast<std::uint64_t>(layout.shape.dim(0));
  const std::uint64_t elements = layout.shape.elements() / rows;
  if (layout.type != DataType::kBytes) {
    const std::size_t size = elements * tensor::element_size(layout.type);
    return all.subspan(row * size, size);
  }
  const auto before = tensor::strings_size(all, elements * row);
  if (!before) return std::nullopt;
  const auto size = tensor::strings_size(all.subspan(*before), elements);
  if (!size) return std::nullopt;
  return all.subspan(*before, *size);
}

Result<Slice> slice_row(const SplitBatch& batch, std::size_t index, std::uint32_t row) {
  const wire::TensorLayout& layout = batch.outputs[index];
  const model::TensorSpec& output = batch.spec.outputs[index];
  Slice slice;
  slice.rank = layout.shape.rank() - 1;
  for (std::size_t i = 0; i < slice.rank; ++i) {
    const std::int64_t dim = layout.shape.dim(i + 1);
    const std::size_t size = output.size_of(i + 1);
    const std::int64_t padded = batch.padded.at.at(size);
    const bool follows = padded > 0 && output.dims[i + 1] < 0 && dim == padded;
    slice.padded.at(i) = dim;
    slice.own.at(i) = follows ? std::int64_t{batch.sizes[row].at.at(size)} : dim;
  }
  const auto bytes = row_bytes(layout, batch.region, row);
  if (!bytes) return bad_output(output, "its strings do not fill its bytes");
  slice.bytes = *bytes;
  if (layout.type == DataType::kBytes && slice.own != slice.padded) {
    auto cut = tensor::reshape_strings({slice.bytes, slice.padded_dims()}, slice.own_dims());
    if (!cut) return bad_output(output, "its strings do not fill its bytes");
    slice.strings = std::move(*cut);
  }
  return slice;
}

std::size_t own_size(const Slice& slice, DataType type) {
  std::size_t size = tensor::element_size(type);
  for (const std::int64_t dim : slice.own_dims()) size *= static_cast<std::size_t>(dim);
  return size;
}

// The bytes of the trimmed row: a view where it is a prefix, else moved into `scratch`.
ByteView trim(const Slice& slice, DataType type, MutableByteView& scratch) {
  const auto take = [&](std::size_t size) {
    const MutableByteView taken = scratch.first(size);
    scratch = scratch.subspan(size);
    return taken;
  };
  if (type == DataType::kBytes) {
    if (slice.own == slice.padded) return slice.bytes;
    const MutableByteView target = take(slice.strings.size());
    if (!target.empty()) std::memcpy(target.data(), slice.strings.data(), target.size());
    return target;
  }
  const std::size_t size = own_size(slice, type);
  if (tensor::is_prefix(slice.own_dims(), slice.padded_dims())) return slice.bytes.first(size);
  const MutableByteView target = take(size);
  tensor::copy_block({slice.bytes, slice.padded_dims()}, {target, slice.own_dims()},
                     tensor::element_size(type));
  return target;
}

}  // namespace

Status check_outputs(const model::ModelSpec& spec, std::span<const wire::TensorLayout> outputs,
                     std::size_t rows, Bytes region_bytes) {
  if (rows == 0 || outputs.size() != spec.outputs.size()) {
    return internal("bad_output", fmt::format("{} outputs for {} rows; the model has {} outputs",
                                              outputs.size(), rows, spec.outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const model::TensorSpec& output = spec.outputs[i];
    if (outputs[i].type != output.type) {
      return bad_output(output,
                        fmt::format("type {}, the model says {}", tensor::datatype_name(outputs[i].type),
                                    tensor::datatype_name(output.type)));
    }
    TONNAGE_TRY(check_dims(spec, output, outputs[i].shape, rows));
    TONNAGE_TRY(check_place(output, outputs[i], region_bytes));
  }
  return Status::ok();
}

Result<std::vector<request::RowOutput>> split_row(const SplitBatch& batch, std::uint32_t row,
                                                  std::vector<std::byte>& scratch) {
  std::vector<Slice> slices;
  slices.reserve(batch.outputs.size());
  std::size_t moved = 0;  // scratch is sized once: views into it must not move
  for (std::size_t i = 0; i < batch.outputs.size(); ++i) {
    TONNAGE_ASSIGN(Slice slice, slice_row(batch, i, row));
    if (slice.own != slice.padded) {
      moved += batch.outputs[i].type == DataType::kBytes ? slice.strings.size()
                                                         : own_size(slice, batch.outputs[i].type);
    }
    slices.push_back(std::move(slice));
  }
  scratch.resize(moved);
  MutableByteView free_scratch(scratch);
  std::vector<request::RowOutput> outputs;
  outputs.reserve(slices.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    request::RowOutput output{batch.outputs[i].type, {}, {}};
    TONNAGE_ASSIGN(output.shape, tensor::Shape::make(slices[i].own_dims()));
    output.bytes = trim(slices[i], output.type, free_scratch);
    if (has_non_finite(output.type, output.bytes)) {
      return internal("non_finite", fmt::format("output '{}' holds a value that is NaN or infinite",
                                                batch.spec.outputs[i].name));
    }
    outputs.push_back(output);
  }
  return outputs;
}

}  // namespace tonnage::batch
