// SPDX-License-Identifier: Apache-2.0
#include "api/text_rows.h"

#include <algorithm>
#include <cstdint>

namespace tonnage::api {
namespace {

template <typename T>
void copy_ids(const std::vector<text::Tokens>& tokens, bool zeros, MutableByteView bytes) {
  const std::span<T> into = as_elements<T>(bytes);
  std::size_t at = 0;
  for (const text::Tokens& row : tokens) {
    for (const std::int64_t id : row.ids) into[at++] = zeros ? T{0} : static_cast<T>(id);
  }
}

request::RowsTensor make_input(const model::TensorSpec& input, const std::vector<text::Tokens>& tokens,
                               bool zeros) {
  const std::size_t element = tensor::element_size(input.type);
  request::RowsTensor tensor;
  std::uint64_t offset = 0;
  for (const text::Tokens& row : tokens) {
    tensor.offsets.push_back(offset);
    offset += row.ids.size() * element;
  }
  tensor.offsets.push_back(offset);
  tensor.data = tensor::Buffer(offset);
  if (element == 4) {
    copy_ids<std::int32_t>(tokens, zeros, tensor.data.mutable_view());
  } else {
    copy_ids<std::int64_t>(tokens, zeros, tensor.data.mutable_view());
  }
  return tensor;
}

}  // namespace

Status fill_text_rows(const model::ModelSpec& spec, const std::vector<text::Tokens>& tokens,
                      request::Request& request) {
  request.rows = static_cast<std::uint32_t>(tokens.size());
  request.lengths.clear();
  for (const text::Tokens& row : tokens) {
    if (!row.continues) request.text_begins.push_back(static_cast<std::uint32_t>(request.lengths.size()));
    request.lengths.push_back(static_cast<std::uint32_t>(row.ids.size()));
    if (row.truncated) ++request.truncated_rows;
    if (row.chunked) ++request.chunked_rows;
  }
  request.text_begins.push_back(request.rows);
  if (request.client_rows() == request.rows) request.text_begins.clear();
  request.inputs.clear();
  bool ids_placed = false;
  for (const model::TensorSpec& input : spec.inputs) {
    const bool takes_ids =
        (input.type == tensor::DataType::kInt64 || input.type == tensor::DataType::kInt32) &&
        input.has_length() && input.source == model::InputSource::kClient;
    if (!takes_ids) {
      request.inputs.emplace_back(std::nullopt);
      continue;
    }
    request.inputs.emplace_back(make_input(input, tokens, ids_placed));
    ids_placed = true;
  }
  if (!ids_placed)
    return internal("no_id_input", "the model names a tokenizer but has no INT64 or INT32 input for ids");
  return Status::ok();
}

}  // namespace tonnage::api
