// SPDX-License-Identifier: Apache-2.0
#include "api/envelope.h"

#include <algorithm>

#include "text/chunks.h"

namespace tonnage::api {
namespace {

// "1," is two bytes of JSON and eight of INT64, twice for a moment while rows become a tensor.
constexpr std::uint64_t kJsonDecodeFactor = 9;
// Four bytes of FP32 are at most about fourteen characters of JSON with the comma.
constexpr std::uint64_t kReplyTextFactor = 4;
constexpr Bytes kPerRequest = kib(4);  // the records around it

}  // namespace

Bytes decoding_bytes(std::size_t body, std::optional<std::size_t> json_length) {
  const std::size_t json = std::min(json_length.value_or(body), body);
  // Binary tensors are copied once, as they are.
  return Bytes(json) * kJsonDecodeFactor + Bytes(body - json) * 2 + kPerRequest;
}

Bytes tokenising_bytes(const model::ModelSpec& spec, std::span<const std::string> texts) {
  const text::LengthRule rule = text::length_rule(spec);
  std::uint64_t ids = 0;
  Bytes total = kPerRequest;
  for (const std::string& text : texts) {
    ids += text::most_ids(text.size(), rule);
    total += Bytes(text.size() + sizeof(std::string));
  }
  Bytes per_id(sizeof(std::int64_t));
  for (const model::TensorSpec& input : spec.inputs) {
    if (input.has_length()) per_id += Bytes(tensor::element_size(input.type));
  }
  return total + per_id * ids;
}

Bytes envelope_bytes(const request::Request& request) {
  Bytes total = kPerRequest;
  for (const auto& input : request.inputs) {
    if (input) total += Bytes(input->data.size());
  }
  return total +
         request.model->output_row_bytes(request.largest_size()) * request.rows * (1 + kReplyTextFactor);
}

}  // namespace tonnage::api
