// SPDX-License-Identifier: Apache-2.0
// Fields: walks the fields of one protobuf message without knowing its schema.
//
// Promises: believes nothing; a block is inside the message that was given. next() is empty at the end and
// where the bytes make no sense; is_sound() tells the two apart.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/spans.h"

namespace tonnage::onnx_worker {

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a number
  ByteView block{};         // of a string or a message
};

class Fields {
 public:
  explicit Fields(ByteView message) : rest_(message) {}

  std::optional<Field> next();
  bool is_sound() const { return is_sound_; }
  // How many bytes a block claims beyond the end; zero where something else is wrong.
  std::uint64_t missing() const { return missing_; }

 private:
  std::uint64_t varint();
  ByteView take(std::uint64_t bytes);

  ByteView rest_;
  bool is_sound_ = true;
  std::uint64_t missing_ = 0;
};

}  // namespace tonnage::onnx_worker
