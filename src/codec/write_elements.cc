// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/json_text.h"
#include "codec/elements.h"
#include "tensor/strings.h"

namespace tonnage::codec {
namespace {

using tensor::DataType;

template <typename T>
T load(ByteView bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.subspan(index * sizeof(T), sizeof(T)).data(), sizeof value);
  return value;
}

template <typename T>
void append_chars(std::string& out, T value) {
  std::array<char, 40> text;  // the longest double takes 24
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  out.append(text.data(), end);
}

float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0) {  // zero and subnormals: fraction × 2⁻²⁴
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 0xffU : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

float float_of_bfloat(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16U); }

template <typename T>
void append_all(std::string& out, ByteView bytes) {
  const std::size_t count = bytes.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    append_chars(out, load<T>(bytes, i));
  }
}

bool append_string_element(std::string& out, std::string_view text) {
  if (!simdjson::validate_utf8(text.data(), text.size())) return false;
  append_json_string(out, text);
  return true;
}

}  // namespace

bool is_json_type(DataType type) { return type != DataType::kFp16 && type != DataType::kBf16; }

void append_number(std::string& out, float value) { append_chars(out, value); }

double element_value(DataType type, ByteView bytes, std::size_t index) {
  switch (type) {
    case DataType::kBool:
    case DataType::kUint8: return load<std::uint8_t>(bytes, index);
    case DataType::kUint16: return load<std::uint16_t>(bytes, index);
    case DataType::kUint32: return load<std::uint32_t>(bytes, index);
    case DataType::kUint64: return static_cast<double>(load<std::uint64_t>(bytes, index));
    case DataType::kInt8: return load<std::int8_t>(bytes, index);
    case DataType::kInt16: return load<std::int16_t>(bytes, index);
    case DataType::kInt32: return load<std::int32_t>(bytes, index);
    case DataType::kInt64: return static_cast<double>(load<std::int64_t>(bytes, index));
    case DataType::kFp16: return float_of_half(load<std::uint16_t>(bytes, index));
    case DataType::kBf16: return float_of_bfloat(load<std::uint16_t>(bytes, index));
    case DataType::kFp32: return load<float>(bytes, index);
    case DataType::kFp64: return load<double>(bytes, index);
    case DataType::kBytes: break;
  }
  return 0;
}

void append_element(std::string& out, DataType type, ByteView bytes, std::size_t index) {
  switch (type) {
    case DataType::kBool: out += load<std::uint8_t>(bytes, index) != 0 ? "true" : "false"; return;
    case DataType::kUint64: append_chars(out, load<std::uint64_t>(bytes, index)); return;
    case DataType::kInt64: append_chars(out, load<std::int64_t>(bytes, index)); return;
    case DataType::kFp64: append_chars(out, load<double>(bytes, index)); return;
    case DataType::kFp32:
    case DataType::kFp16:
    case DataType::kBf16: append_chars(out, static_cast<float>(element_value(type, bytes, index))); return;
    default: append_chars(out, static_cast<std::int64_t>(element_value(type, bytes, index))); return;
  }
}

bool append_flat(std::string& out, DataType type, ByteView bytes) {
  switch (type) {
    case DataType::kFp32: append_all<float>(out, bytes); return true;
    case DataType::kFp64: append_all<double>(out, bytes); return true;
    case DataType::kInt64: append_all<std::int64_t>(out, bytes); return true;
    case DataType::kInt32: append_all<std::int32_t>(out, bytes); return true;
    case DataType::kBytes: break;
    default:
      for (std::size_t i = 0; i < bytes.size() / tensor::element_size(type); ++i) {
        if (i > 0) out += ',';
        append_element(out, type, bytes, i);
      }
      return true;
  }
  bool is_first = true;
  for (ByteView rest = bytes; const auto text = tensor::take_string(rest);) {
    if (!is_first) out += ',';
    is_first = false;
    if (!append_string_element(out, *text)) return false;
  }
  return true;
}

bool append_nested(std::string& out, DataType type, tensor::ConstBlock block) {
  std::array<std::size_t, tensor::kMaxRank + 1> strides{};  // elements of dims i and behind
  std::size_t elements = 1;
  for (std::size_t i = block.dims.size(); i-- > 0;) {
    elements *= static_cast<std::size_t>(block.dims[i]);
    strides.at(i) = elements;
  }
  if (elements == 0) {
    out += "[]";
    return true;
  }
  ByteView strings = block.bytes;
  for (std::size_t index = 0; index < elements; ++index) {
    if (index > 0) out += ',';
    for (std::size_t i = 0; i < block.dims.size(); ++i) {
      if (index % strides.at(i) == 0) out += '[';
    }
    if (type != DataType::kBytes) {
      append_element(out, type, block.bytes, index);
    } else if (const auto text = tensor::take_string(strings); !text || !append_string_element(out, *text)) {
      return false;
    }
    for (std::size_t i = 0; i < block.dims.size(); ++i) {
      if ((index + 1) % strides.at(i) == 0) out += ']';
    }
  }
  return true;
}

}  // namespace tonnage::codec
