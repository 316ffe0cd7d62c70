// SPDX-License-Identifier: Apache-2.0
#include "request/pooling.h"

#include <algorithm>

#include "base/spans.h"

namespace tonnage::request {
namespace {

struct Chunks {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

template <typename T>
void pool_text(const Request& request, Chunks chunks, std::span<const T> rows, std::span<T> text) {
  const auto row = [&](std::uint32_t i) { return rows.subspan(i * text.size(), text.size()); };
  if (chunks.end - chunks.begin == 1) {
    std::ranges::copy(row(chunks.begin), text.begin());
    return;
  }
  double weights = 0;
  for (std::uint32_t i = chunks.begin; i < chunks.end; ++i) weights += request.row_length(i);
  const bool is_mean = request.model->chunk_pooling == model::ChunkPooling::kMean;
  for (std::size_t at = 0; at < text.size(); ++at) {
    double sum = 0;
    T largest = row(chunks.begin)[at];
    for (std::uint32_t i = chunks.begin; i < chunks.end; ++i) {
      sum += static_cast<double>(row(i)[at]) * request.row_length(i);
      largest = std::max(largest, row(i)[at]);
    }
    text[at] = is_mean ? static_cast<T>(sum / weights) : largest;
  }
}

template <typename T>
void pool_texts(const Request& request, ByteView rows, MutableByteView texts) {
  const std::uint32_t count = request.client_rows();
  const std::span<T> all = as_elements<T>(texts);
  const std::size_t elements = all.size() / count;
  for (std::uint32_t i = 0; i < count; ++i) {
    pool_text<T>(request, {request.text_begins[i], request.text_begins[i + 1]}, as_elements<T>(rows),
                 all.subspan(i * elements, elements));
  }
}

}  // namespace

Result<OutputTensor> pool_chunks(const Request& request, const OutputTensor& chunks) {
  std::vector<std::int64_t> dims(chunks.shape.dims().begin(), chunks.shape.dims().end());
  dims.at(0) = request.client_rows();
  OutputTensor pooled{chunks.name, chunks.type, {}, {}};
  TONNAGE_ASSIGN(pooled.shape, tensor::Shape::make(dims));
  pooled.data = tensor::Buffer(pooled.shape.bytes_of(pooled.type).size());
  if (pooled.type == tensor::DataType::kFp32) {
    pool_texts<float>(request, chunks.data.view(), pooled.data.mutable_view());
  } else if (pooled.type == tensor::DataType::kFp64) {
    pool_texts<double>(request, chunks.data.view(), pooled.data.mutable_view());
  } else {
    return internal("bad_output", "output '" + chunks.name + "' cannot be pooled");
  }
  return pooled;
}

}  // namespace tonnage::request
