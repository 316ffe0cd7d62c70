// SPDX-License-Identifier: Apache-2.0
// Elements of tensors as text: read from JSON arrays and from number tokens, written to JSON.
//
// Promises: integers outside their datatype and floats that would become infinite are refused, never
// wrapped; a JSON array is bounded by what the text can hold before its tensor is allocated; what is
// written is the shortest text that reads back as the same value.
// Threads: pure functions. Fails with: invalid_argument/{bad_value, element_count, bad_json, json_depth}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/spans.h"
#include "base/status.h"
#include "codec/json/reader.h"
#include "request/request.h"
#include "tensor/block.h"
#include "tensor/datatype.h"
#include "tensor/shape.h"

namespace tonnage::codec {

enum class Parsed : std::uint8_t { kOk, kNotANumber, kNotWhole, kOutOfRange };
// `token` as one element of `type` (numbers only: no BOOL, BYTES, FP16, BF16), written to `out`.
Parsed parse_number(tensor::DataType type, std::string_view token, MutableByteView out);
// "'300' is outside UINT8".
std::string describe(Parsed why, tensor::DataType type, std::string_view token);

// Read the JSON value in front of `reader` as one element; `why` is set when they give false.
bool read_string_element(JsonReader& reader, std::string_view& text, Status& why);
bool read_element(JsonReader& reader, tensor::DataType type, MutableByteView out, Status& why);

struct TensorHead {
  std::string_view name;
  tensor::DataType type;
  const tensor::Shape& shape;  // dim 0 = rows, at least 1
};
// Reads the array in front of `reader`, flat or nested as the shape says.
Result<request::RowsTensor> read_tensor(JsonReader& reader, const TensorHead& head);
// Proves raw bytes (BOOL is 0 or 1, strings fill them exactly) and copies them.
Result<request::RowsTensor> copy_tensor(ByteView bytes, const TensorHead& head);

// Types of which JSON has no number: FP16, BF16.
bool is_json_type(tensor::DataType type);
// Element `index` of a fixed-size type as a double, FP16 and BF16 too.
double element_value(tensor::DataType type, ByteView bytes, std::size_t index);
void append_element(std::string& out, tensor::DataType type, ByteView bytes, std::size_t index);
// "1,2,3". False when a BYTES element is not UTF-8: JSON cannot carry it.
bool append_flat(std::string& out, tensor::DataType type, ByteView bytes);
// "[[1,2],[3,4]]".
bool append_nested(std::string& out, tensor::DataType type, tensor::ConstBlock block);
void append_number(std::string& out, float value);

}  // namespace tonnage::codec
