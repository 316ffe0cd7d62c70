// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <algorithm>

namespace tonnage::model {
namespace {

// What is reserved for one string of an output. A longer one goes the way of every output that is
// larger than its region: the worker says `need`.
constexpr std::uint64_t kStringOutputBytes = 256;
constexpr std::uint64_t kStringPrefixBytes = 4;

Bytes row_bytes(const TensorSpec& tensor, const RowSize& row, std::uint64_t string_bytes) {
  const std::size_t element = tensor::element_size(tensor.type);
  Bytes bytes(element > 0 ? element : kStringPrefixBytes + string_bytes);
  for (std::size_t i = 1; i < tensor.dims.size(); ++i) {
    bytes = bytes * static_cast<std::uint64_t>(tensor.dim_for(i, row));
  }
  return bytes;
}

}  // namespace

Tier ModelSpec::tier() const { return device.empty() ? route_of(route).tier : Tier::kCapped; }

std::uint32_t ModelSpec::padded(std::uint32_t length) const {
  // Rows that are grouped by equal size are never padded.
  if (max_length == 0 || !sizes.empty() || meet == MeetRule::kGroup || batching.pad_multiple <= 1)
    return length;
  const std::uint64_t step = batching.pad_multiple;
  const std::uint64_t rounded = (std::max<std::uint64_t>(length, 1) + step - 1) / step * step;
  // Never below `length`: a caller that forgot to check the length must not get a slot too small.
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(length, std::min<std::uint64_t>(rounded, max_length)));
}

Bytes ModelSpec::input_row_bytes(std::size_t i, const RowSize& row) const {
  // The bytes of a string input are known from the request alone; here only its length prefix counts.
  return row_bytes(inputs.at(i), row, 0);
}

Bytes ModelSpec::output_row_bytes(const RowSize& row) const {
  Bytes sum;
  for (const TensorSpec& output : outputs) sum += row_bytes(output, row, kStringOutputBytes);
  return sum;
}

std::optional<std::size_t> ModelSpec::find_input(std::string_view input) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == input) return i;
  }
  return std::nullopt;
}

std::string_view enforce_name(Enforce enforce) { return enforce == Enforce::kOn ? "on" : "observe"; }

}  // namespace tonnage::model
