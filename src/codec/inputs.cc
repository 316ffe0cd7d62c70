// SPDX-License-Identifier: Apache-2.0
#include "codec/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/decoded.h"
#include "codec/elements.h"
#include "tensor/block.h"
#include "tensor/buffer.h"
#include "tensor/strings.h"

namespace tonnage::codec {
namespace {

using tensor::DataType;

Status bad_shape(const model::TensorSpec& input, const tensor::Shape& shape, std::string_view why) {
  return invalid("bad_shape", fmt::format("input '{}': shape {} does not fit [{}], {}", input.name,
                                          shape.to_string(), fmt::join(input.dims, ","), why));
}

// Every row cut to its first `length` positions.
request::RowsTensor cut_rows(const model::TensorSpec& input, const SentInput& sent, std::uint32_t length) {
  std::vector<std::int64_t> dims(sent.shape.dims().begin(), sent.shape.dims().end());
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (input.dims[i] < 0) dims[i] = length;
  }
  request::RowsTensor cut;
  if (input.type == DataType::kBytes) {
    const tensor::Dims row_dims = tensor::Dims(dims).subspan(1);
    std::vector<std::byte> all;
    for (std::uint32_t row = 0; row < static_cast<std::uint32_t>(dims[0]); ++row) {
      cut.offsets.push_back(all.size());
      const auto kept =
          tensor::reshape_strings({sent.values.row(row), sent.shape.dims().subspan(1)}, row_dims);
      TONNAGE_CHECK(kept.has_value(), "strings were proven when they were read");
      all.insert(all.end(), kept->begin(), kept->end());
    }
    cut.offsets.push_back(all.size());
    cut.data = tensor::Buffer(all.size());
    if (!all.empty()) std::memcpy(cut.data.mutable_view().data(), all.data(), all.size());
    return cut;
  }
  const std::size_t element = tensor::element_size(input.type);
  std::size_t bytes = element;
  for (const std::int64_t dim : dims) bytes *= static_cast<std::size_t>(dim);
  cut.data = tensor::Buffer(bytes);
  cut.row_bytes = bytes / static_cast<std::size_t>(dims[0]);
  tensor::copy_block({sent.values.data.view(), sent.shape.dims()}, {cut.data.mutable_view(), dims}, element);
  return cut;
}

// The one length, or the sizes, of all inputs with free dims.
Result<SentSize> common_size(const model::ModelSpec& spec,
                             const std::vector<std::optional<SentInput>>& sent) {
  SentSize common;
  std::array<std::string_view, model::kMaxSizes> first;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const model::TensorSpec& input = spec.inputs[i];
    for (std::size_t d = 1; sent[i] && d < input.dims.size(); ++d) {
      if (input.dims[d] >= 0) continue;
      const std::size_t size = input.size_of(d);
      const auto own = static_cast<std::uint64_t>(sent[i]->shape.dim(d));
      if (common.at(size) && *common.at(size) != own) {
        return invalid("lengths_differ",
                       fmt::format("input '{0}' has {1} {2}, input '{3}' has {1} {4}", input.name,
                                   spec.size_name(size), own, first.at(size), *common.at(size)));
      }
      common.at(size) = own;
      first.at(size) = input.name;
    }
  }
  return common;
}

Result<std::uint32_t> common_rows(const model::ModelSpec& spec,
                                  const std::vector<std::optional<SentInput>>& sent) {
  std::optional<std::int64_t> rows;
  std::string_view first;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (!sent[i]) {
      if (spec.inputs[i].source == model::InputSource::kMask) continue;
      return invalid("missing_input", fmt::format("input '{}' is missing", spec.inputs[i].name));
    }
    const std::int64_t own = sent[i]->shape.dim(0);
    if (rows && *rows != own) {
      return invalid("rows_differ", fmt::format("input '{}' has {} rows, input '{}' has {}",
                                                spec.inputs[i].name, own, first, *rows));
    }
    rows = own;
    first = spec.inputs[i].name;
  }
  TONNAGE_TRY(check_row_count(spec, static_cast<std::uint64_t>(rows.value_or(0))));
  return static_cast<std::uint32_t>(*rows);
}

template <typename T>
std::optional<std::size_t> first_outside(ByteView bytes, const model::ValueRange& range) {
  const auto values = as_elements<T>(bytes);
  const auto found = std::ranges::find_if(
      values, [&](T value) { return std::cmp_less(value, range.min) || std::cmp_greater(value, range.max); });
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

std::optional<std::size_t> find_outside(DataType type, ByteView bytes, const model::ValueRange& range) {
  switch (type) {
    case DataType::kUint8: return first_outside<std::uint8_t>(bytes, range);
    case DataType::kUint16: return first_outside<std::uint16_t>(bytes, range);
    case DataType::kUint32: return first_outside<std::uint32_t>(bytes, range);
    case DataType::kUint64: return first_outside<std::uint64_t>(bytes, range);
    case DataType::kInt8: return first_outside<std::int8_t>(bytes, range);
    case DataType::kInt16: return first_outside<std::int16_t>(bytes, range);
    case DataType::kInt32: return first_outside<std::int32_t>(bytes, range);
    case DataType::kInt64: return first_outside<std::int64_t>(bytes, range);
    default: return std::nullopt;
  }
}

}  // namespace

Status check_row_count(const model::ModelSpec& spec, std::uint64_t rows) {
  if (rows == 0) return invalid("no_rows", "a request has at least one row");
  if (rows > spec.max_rows_per_request) {
    return {Code::kTooLarge, "too_many_rows",
            fmt::format("{} rows; the model '{}' takes at most {} in one request", rows, spec.name,
                        spec.max_rows_per_request)};
  }
  return Status::ok();
}

Status check_size(const model::ModelSpec& spec, const model::TensorSpec& input, std::size_t size,
                  std::uint64_t value) {
  if (value == 0) {
    return invalid("zero_length",
                   fmt::format("input '{}': {} 0; rows of this model have at least one position", input.name,
                               spec.size_name(size)));
  }
  if (value > spec.largest(size) && spec.too_long != model::TooLong::kTruncate) {
    return {Code::kTooLarge, "too_long",
            fmt::format("input '{}': {} {}; the model '{}' takes at most {}", input.name,
                        spec.size_name(size), value, spec.name, spec.largest(size))};
  }
  return Status::ok();
}

model::RowSize row_size(const SentSize& sent) {
  model::RowSize size;
  for (std::size_t i = 0; i < sent.size(); ++i)
    size.at.at(i) = static_cast<std::uint32_t>(sent.at(i).value_or(0));
  return size;
}

std::uint32_t scheduled_length(const model::ModelSpec& spec, const model::RowSize& size) {
  return spec.sizes.empty() ? size.at[0] : spec.length_of(spec.padded_size(size));
}

Status check_shape(const model::ModelSpec& spec, const model::TensorSpec& input, const tensor::Shape& shape) {
  if (shape.rank() != input.dims.size()) {
    return bad_shape(input, shape, fmt::format("which has rank {}", input.dims.size()));
  }
  SentSize sizes;
  for (std::size_t i = 1; i < shape.rank(); ++i) {
    const std::int64_t dim = shape.dim(i);
    if (input.dims[i] >= 0 && dim != input.dims[i]) {
      return bad_shape(input, shape, fmt::format("dim {} must be {}", i, input.dims[i]));
    }
    if (input.dims[i] >= 0) continue;
    auto& known = sizes.at(input.size_of(i));
    if (known && *known != static_cast<std::uint64_t>(dim)) {
      return bad_shape(input, shape,
                       fmt::format("whose free dims are one {}", spec.size_name(input.size_of(i))));
    }
    known = static_cast<std::uint64_t>(dim);
  }
  TONNAGE_TRY(check_row_count(spec, static_cast<std::uint64_t>(shape.dim(0))));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes.at(i)) TONNAGE_TRY(check_size(spec, input, i, *sizes.at(i)));
  }
  return Status::ok();
}

Status check_ranges(const model::ModelSpec& spec, const request::Request& request) {
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const model::TensorSpec& input = spec.inputs[i];
    if (!request.inputs[i] || !input.range) continue;
    const request::RowsTensor& values = *request.inputs[i];
    const auto at = find_outside(input.type, values.data.view(), *input.range);
    if (!at) continue;
    const std::size_t element = tensor::element_size(input.type);
    std::uint32_t row = 0;
    std::size_t begin = 0;
    while (begin + values.row(row).size() <= *at * element) begin += values.row(row++).size();
    std::string value;
    append_element(value, input.type, values.data.view(), *at);
    return invalid("value_range",
                   fmt::format("input '{}', row {}, position {}: {} is outside {} to {}", input.name, row,
                               *at - begin / element, value, input.range->min, input.range->max));
  }
  return Status::ok();
}

Status settle(const model::ModelSpec& spec, std::vector<std::optional<SentInput>> sent,
              request::Request& request) {
  TONNAGE_ASSIGN(request.rows, common_rows(spec, sent));
  TONNAGE_ASSIGN(const SentSize common, common_size(spec, sent));
  const std::uint64_t length = common[0].value_or(0);
  const bool is_cut = spec.sizes.empty() && spec.has_length() && length > spec.max_length;
  request.length = is_cut ? spec.max_length : scheduled_length(spec, row_size(common));
  if (!spec.sizes.empty()) request.sizes = {row_size(common)};
  if (is_cut) request.truncated_rows = request.rows;
  request.inputs.resize(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (!sent[i]) continue;
    if (is_cut && spec.inputs[i].has_length())
      sent[i]->values = cut_rows(spec.inputs[i], *sent[i], request.length);
    request.inputs[i] = std::move(sent[i]->values);
  }
  return check_ranges(spec, request);
}

}  // namespace tonnage::codec
