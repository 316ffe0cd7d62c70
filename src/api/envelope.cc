// SPDX-License-Identifier: Apache-2.0
#include "api/envelope.h"

#include <algorithm>

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

Bytes envelope_bytes(const request::Request& request) {
  Bytes total = kPerRequest;
  for (const auto& input : request.inputs) {
    if (input) total += Bytes(input->data.size());
  }
  std::uint32_t longest = request.length;
  for (const std::uint32_t length : request.lengths) longest = std::max(longest, length);
  return total + request.model->output_row_bytes(longest) * request.rows * (1 + kReplyTextFactor);
}

}  // namespace tonnage::api
