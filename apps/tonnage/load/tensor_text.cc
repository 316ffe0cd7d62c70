// SPDX-License-Identifier: Apache-2.0
#include "load/tensor_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "base/json_text.h"

namespace tonnage::load {
namespace {

bool is_float(std::string_view datatype) { return datatype.starts_with("FP") || datatype.starts_with("BF"); }

// The bit pattern of a random element.
std::uint64_t element(const InputInfo& input, std::uint32_t vocabulary, Random& random) {
  if (input.is_mask()) return 1;
  if (!is_float(input.datatype)) {
    // Not beyond what the type can hold with a sign.
    const std::uint64_t limit = input.element_bytes >= 4 ? vocabulary : std::min(vocabulary, 127U);
    return random.below(input.datatype == "BOOL" ? 2 : limit);
  }
  const double value = random.unit();
  if (input.element_bytes == 8) return std::bit_cast<std::uint64_t>(value);
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (input.element_bytes == 4) return single;
  if (input.datatype == "BF16") return single >> 16U;
  return 0x3800 + (random.next() & 0x3ffU);  // FP16 in [0.5, 1)
}

std::uint64_t read_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

void append_little_endian(std::string& out, std::uint64_t value, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xffU);
}

std::string TensorText::json() const {
  std::string text = "[";
  for (std::size_t at = 0; at < bytes.size(); at += element_bytes) {
    if (at > 0) text += ',';
    const std::uint64_t bits = read_little_endian(std::string_view(bytes).substr(at, element_bytes));
    if (datatype == "FP32") {
      append_json_number(text, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    } else if (datatype == "FP64") {
      append_json_number(text, std::bit_cast<double>(bits));
    } else if (datatype == "BOOL") {
      text += bits == 0 ? "false" : "true";
    } else {
      fmt::format_to(std::back_inserter(text), "{}", bits);
    }
  }
  return text + "]";
}

TensorText make_tensor(const InputInfo& input, const TensorSize& size, Random& random) {
  TensorText tensor;
  tensor.datatype = input.datatype;
  tensor.element_bytes = input.element_bytes;
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const std::uint64_t free_dim = i == 0 ? size.rows : size.length;
    const std::uint64_t dim = input.shape[i] < 0 ? free_dim : static_cast<std::uint64_t>(input.shape[i]);
    tensor.shape += fmt::format("{}{}", i == 0 ? '[' : ',', dim);
    elements *= dim;
  }
  tensor.shape += ']';
  tensor.bytes.reserve(elements * input.element_bytes);
  for (std::uint64_t i = 0; i < elements; ++i) {
    append_little_endian(tensor.bytes, element(input, size.vocabulary, random), input.element_bytes);
  }
  return tensor;
}

}  // namespace tonnage::load
