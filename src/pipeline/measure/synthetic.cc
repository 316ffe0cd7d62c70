// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure/synthetic.h"

#include <algorithm>

#include "base/random.h"

namespace tonnage::pipeline {
namespace {

using tensor::DataType;

template <typename T>
void fill_integers(MutableByteView bytes, const model::ValueRange& range, Random& random) {
  for (T& value : as_elements<T>(bytes)) value = static_cast<T>(random.between(range.min, range.max));
}

template <typename T>
void fill_reals(MutableByteView bytes, Random& random) {
  for (T& value : as_elements<T>(bytes)) value = static_cast<T>(random.unit());
}

void fill(const model::TensorSpec& input, MutableByteView bytes, Random& random) {
  // Without a stated range 0 and 1 are the only integers that every model can be expected to take.
  const model::ValueRange range = input.range.value_or(model::ValueRange{0, 1});
  switch (input.type) {
    case DataType::kBool: return fill_integers<std::uint8_t>(bytes, {0, 1}, random);
    case DataType::kUint8: return fill_integers<std::uint8_t>(bytes, range, random);
    case DataType::kInt8: return fill_integers<std::int8_t>(bytes, range, random);
    case DataType::kUint16: return fill_integers<std::uint16_t>(bytes, range, random);
    case DataType::kInt16: return fill_integers<std::int16_t>(bytes, range, random);
    case DataType::kUint32: return fill_integers<std::uint32_t>(bytes, range, random);
    case DataType::kInt32: return fill_integers<std::int32_t>(bytes, range, random);
    case DataType::kUint64: return fill_integers<std::uint64_t>(bytes, range, random);
    case DataType::kInt64: return fill_integers<std::int64_t>(bytes, range, random);
    case DataType::kFp32: return fill_reals<float>(bytes, random);
    case DataType::kFp64: return fill_reals<double>(bytes, random);
    // 16-bit floats: zero is the same bits in both. BYTES: a zero length prefix per element.
    case DataType::kFp16:
    case DataType::kBf16:
    case DataType::kBytes: std::ranges::fill(bytes, std::byte{0}); return;
  }
}

}  // namespace

request::Request synthetic_request(const model::ModelHandle& spec, std::uint32_t rows, std::uint32_t length,
                                   std::uint64_t seed) {
  Random random(seed);
  request::Request request;
  request.model = spec;
  request.rows = rows;
  const model::RowSize size = spec->size_of_length(length);
  request.length = spec->length_of(size);
  if (!spec->sizes.empty()) request.sizes = {size};
  for (std::size_t i = 0; i < spec->inputs.size(); ++i) {
    const model::TensorSpec& input = spec->inputs[i];
    if (input.source == model::InputSource::kMask) {
      request.inputs.emplace_back(std::nullopt);
      continue;
    }
    request::RowsTensor tensor;
    tensor.row_bytes = spec->input_row_bytes(i, size).count();
    tensor.data = tensor::Buffer(tensor.row_bytes * rows);
    fill(input, tensor.data.mutable_view(), random);
    request.inputs.emplace_back(std::move(tensor));
  }
  return request;
}

}  // namespace tonnage::pipeline
