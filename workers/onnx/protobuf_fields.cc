// SPDX-License-Identifier: Apache-2.0
#include "onnx/protobuf_fields.h"

namespace tonnage::onnx_worker {
namespace {

constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kBlock = 2;
constexpr unsigned kFixed32 = 5;

}  // namespace

std::optional<Field> Fields::next() {
  if (rest_.empty() || !is_sound_) return std::nullopt;
  Field field;
  const std::uint64_t tag = varint();
  field.number = tag >> 3U;
  switch (tag & 7U) {
    case kVarint: field.value = varint(); break;
    case kFixed64: field.block = take(8); break;
    case kFixed32: field.block = take(4); break;
    case kBlock: field.block = take(varint()); break;
    default: is_sound_ = false;
  }
  if (field.number == 0) is_sound_ = false;
  return is_sound_ ? std::optional(field) : std::nullopt;
}

std::uint64_t Fields::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    value |= (byte & 0x7fU) << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  is_sound_ = false;
  return 0;
}

ByteView Fields::take(std::uint64_t bytes) {
  if (!is_sound_) return {};
  if (bytes > rest_.size()) {
    is_sound_ = false;
    missing_ = bytes - rest_.size();
    return {};
  }
  const ByteView block = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return block;
}

}  // namespace tonnage::onnx_worker
