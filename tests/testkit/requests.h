// SPDX-License-Identifier: Apache-2.0
// Reading what codec and batch made, and making answers for what they encode.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/spans.h"
#include "request/assembly.h"
#include "request/request.h"
#include "tensor/strings.h"

namespace tonnage::testkit {

template <typename T>
std::vector<T> values_of(ByteView bytes) {
  const auto elements = as_elements<T>(bytes);
  return {elements.begin(), elements.end()};
}

inline std::vector<std::string> strings_of(ByteView bytes) {
  std::vector<std::string> texts;
  while (const auto text = tensor::take_string(bytes)) texts.emplace_back(*text);
  return texts;
}

template <typename T>
request::OutputTensor output_tensor(std::string name, tensor::DataType type, std::vector<std::int64_t> dims,
                                    const std::vector<T>& values) {
  request::OutputTensor output;
  output.name = std::move(name);
  output.type = type;
  output.shape = tensor::Shape::make(dims).value();
  const ByteView bytes = std::as_bytes(std::span(values));
  output.data = tensor::Buffer(bytes.size());
  std::ranges::copy(bytes, output.data.mutable_view().begin());
  return output;
}

inline request::OutputTensor string_output(std::string name, std::vector<std::int64_t> dims,
                                           const std::vector<std::string>& texts) {
  std::vector<std::byte> bytes;
  for (const std::string& text : texts) tensor::append_string(bytes, text);
  return output_tensor(std::move(name), tensor::DataType::kBytes, std::move(dims), bytes);
}

}  // namespace tonnage::testkit
