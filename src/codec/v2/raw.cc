// SPDX-License-Identifier: Apache-2.0
#include "codec/v2/raw.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

#include "codec/elements.h"
#include "codec/inputs.h"
#include "codec/v2/v2.h"
#include "tensor/strings.h"

namespace tonnage::codec::v2 {
namespace {

// A body without JSON: the bytes of the only input. One dim may be left open: rows, or else the length
// of a single row.
Result<tensor::Shape> raw_shape(const model::TensorSpec& input, std::size_t bytes) {
  std::uint64_t unit = tensor::element_size(input.type);
  int free_dims = 0;
  for (std::size_t i = 1; i < input.dims.size(); ++i) {
    if (input.dims[i] < 0) ++free_dims;
    unit *= input.dims[i] < 0 ? 1 : static_cast<std::uint64_t>(input.dims[i]);
  }
  if (free_dims > 1 || unit == 0 || bytes % unit != 0) {
    return invalid("bad_shape",
                   fmt::format("{} raw bytes do not give input '{}' a shape; it takes multiples of {}", bytes,
                               input.name, unit));
  }
  std::vector<std::int64_t> dims = input.dims;
  const auto open = static_cast<std::int64_t>(bytes / unit);
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] < 0) dims[i] = open;
  }
  if (!dims.empty()) dims[0] = free_dims == 1 ? 1 : open;
  return tensor::Shape::make(dims);
}

}  // namespace

Result<Decoded> decode_raw(const model::ModelSpec& spec, std::string_view body) {
  Decoded decoded;
  decoded.format.binary_by_default = true;
  if (spec.tokenizer) {
    decoded.texts.emplace_back(body);
    decoded.request.rows = 1;
    return decoded;
  }
  std::optional<std::size_t> only;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].source == model::InputSource::kMask) continue;
    if (only)
      return invalid("raw_request",
                     fmt::format("the model '{}' has several inputs, a raw body carries one", spec.name));
    only = i;
  }
  if (!only) return invalid("raw_request", fmt::format("the model '{}' has no input", spec.name));
  const model::TensorSpec& input = spec.inputs[*only];
  std::vector<std::byte> string;
  ByteView bytes = as_bytes(body);
  tensor::Shape shape;
  if (input.type == tensor::DataType::kBytes) {
    tensor::append_string(string, body);
    bytes = string;
    TONNAGE_ASSIGN(shape, tensor::Shape::make(std::vector<std::int64_t>(input.dims.size(), 1)));
  } else {
    TONNAGE_ASSIGN(shape, raw_shape(input, bytes.size()));
  }
  TONNAGE_TRY(check_shape(spec, input, shape));
  std::vector<std::optional<SentInput>> sent(spec.inputs.size());
  TONNAGE_ASSIGN(request::RowsTensor values, copy_tensor(bytes, {input.name, input.type, shape}));
  sent[*only] = SentInput{shape, std::move(values)};
  TONNAGE_TRY(settle(spec, std::move(sent), decoded.request));
  return decoded;
}

Result<std::optional<std::size_t>> parse_json_length(std::string_view header, std::size_t body_bytes) {
  std::size_t length = 0;
  const char* const end = header.data() + header.size();
  const auto [stop, error] = std::from_chars(header.data(), end, length);
  if (error == std::errc::invalid_argument || stop != end) {
    return invalid(
        "json_length",
        fmt::format("Inference-Header-Content-Length is '{}', not a number of bytes", header.substr(0, 40)));
  }
  if (error != std::errc() || length > body_bytes) {
    return invalid("json_length", fmt::format("Inference-Header-Content-Length is {}, the body has {} bytes",
                                              header.substr(0, 40), body_bytes));
  }
  return std::optional<std::size_t>(length);
}

}  // namespace tonnage::codec::v2
