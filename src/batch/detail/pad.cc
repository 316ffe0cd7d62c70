// SPDX-License-Identifier: Apache-2.0
#include "batch/detail/pad.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tonnage::batch::detail {
namespace {

using tensor::DataType;

template <typename T>
Element element_of(T value) {
  Element element;
  element.size = sizeof value;
  std::memcpy(element.bytes.data(), &value, sizeof value);
  return element;
}

// Integers beyond ±65504 have no binary16; they become infinity of their sign. Rounds to nearest even.
std::uint16_t half_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude < 0x3f800000U) return sign;  // integers below 1: zero
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

std::uint16_t bfloat_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace

Element make_element(DataType type, std::int64_t value) {
  switch (type) {
    case DataType::kBool: return element_of(static_cast<std::uint8_t>(value != 0));
    case DataType::kUint8: return element_of(static_cast<std::uint8_t>(value));
    case DataType::kUint16: return element_of(static_cast<std::uint16_t>(value));
    case DataType::kUint32: return element_of(static_cast<std::uint32_t>(value));
    case DataType::kUint64: return element_of(static_cast<std::uint64_t>(value));
    case DataType::kInt8: return element_of(static_cast<std::int8_t>(value));
    case DataType::kInt16: return element_of(static_cast<std::int16_t>(value));
    case DataType::kInt32: return element_of(static_cast<std::int32_t>(value));
    case DataType::kInt64: return element_of(value);
    case DataType::kFp16: return element_of(half_of(static_cast<float>(value)));
    case DataType::kBf16: return element_of(bfloat_of(static_cast<float>(value)));
    case DataType::kFp32: return element_of(static_cast<float>(value));
    case DataType::kFp64: return element_of(static_cast<double>(value));
    case DataType::kBytes: break;
  }
  return {};
}

void fill(MutableByteView target, const Element& element) {
  if (target.empty() || element.size == 0) return;
  const auto used = std::span(element.bytes).first(element.size);
  if (std::ranges::all_of(used, [&](std::byte b) { return b == used[0]; })) {
    std::memset(target.data(), std::to_integer<int>(used[0]), target.size());
    return;
  }
  std::memcpy(target.data(), used.data(), used.size());
  // What is written so far is copied behind itself, doubling.
  for (std::size_t done = used.size(); done < target.size();) {
    const std::size_t step = std::min(done, target.size() - done);
    std::memcpy(target.data() + done, target.data(), step);
    done += step;
  }
}

}  // namespace tonnage::batch::detail
