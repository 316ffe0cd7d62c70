// SPDX-License-Identifier: Apache-2.0
#include "tensor/strings.h"

#include <cstring>

namespace tonnage::tensor {
namespace {

std::size_t product(Dims dims) {
  std::size_t elements = 1;
  for (const std::int64_t dim : dims) elements *= static_cast<std::size_t>(dim);
  return elements;
}

}  // namespace

std::optional<std::string_view> take_string(ByteView& rest) {
  std::uint32_t length = 0;
  if (rest.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, rest.data(), sizeof length);
  if (length > rest.size() - sizeof length) return std::nullopt;
  const std::string_view text = as_text(rest.subspan(sizeof length, length));
  rest = rest.subspan(sizeof length + length);
  return text;
}

std::optional<std::size_t> strings_size(ByteView bytes, std::uint64_t count) {
  ByteView rest = bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!take_string(rest)) return std::nullopt;
  }
  return bytes.size() - rest.size();
}

void append_string(std::vector<std::byte>& out, std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  const ByteView prefix = std::as_bytes(std::span(&length, 1));
  out.insert(out.end(), prefix.begin(), prefix.end());
  const ByteView body = as_bytes(text);
  out.insert(out.end(), body.begin(), body.end());
}

std::optional<std::vector<std::byte>> reshape_strings(ConstBlock from, Dims dims) {
  const std::size_t count = product(from.dims);
  if (count > from.bytes.size() / sizeof(std::uint32_t)) return std::nullopt;
  std::vector<std::string_view> texts;
  texts.reserve(count);
  ByteView rest = from.bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto text = take_string(rest);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  std::vector<std::string_view> laid(product(dims));
  for_each_run(from.dims, dims, [&](std::size_t at_from, std::size_t at_to, std::size_t run) {
    for (std::size_t i = 0; i < run; ++i) laid[at_to + i] = texts[at_from + i];
  });
  std::vector<std::byte> out;
  for (const std::string_view text : laid) append_string(out, text);
  return out;
}

}  // namespace tonnage::tensor
