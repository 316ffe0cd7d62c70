// SPDX-License-Identifier: Apache-2.0
// Datatypes of the Open Inference Protocol, with their sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace tonnage::tensor {

// The numbers are part of the wire protocol (docs/wire.md): append only.
enum class DataType : std::uint8_t {
  kBool = 1,
  kUint8 = 2,
  kUint16 = 3,
  kUint32 = 4,
  kUint64 = 5,
  kInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kFp16 = 10,
  kFp32 = 11,
  kFp64 = 12,
  kBytes = 13,  // strings; on the wire and in buffers: (uint32 length, bytes)*
  kBf16 = 14,
};

// Bytes per element; 0 for kBytes, whose elements have no fixed size.
std::size_t element_size(DataType type);
// "FP32".
std::string_view datatype_name(DataType type);
// Error: bad_datatype, listing the known names.
Result<DataType> parse_datatype(std::string_view name);
// From a byte that another process sent. Error: bad_datatype.
Result<DataType> datatype_from_wire(std::uint8_t value);
bool is_integer(DataType type);

}  // namespace tonnage::tensor
