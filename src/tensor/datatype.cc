// SPDX-License-Identifier: Apache-2.0
#include "tensor/datatype.h"

#include <fmt/format.h>

#include <array>

namespace tonnage::tensor {
namespace {

struct Row {
  std::string_view name;
  std::size_t size;
};
// In the order of enum class DataType, which starts at 1.
constexpr std::array<Row, 14> kTypes = {{{"BOOL", 1},
                                         {"UINT8", 1},
                                         {"UINT16", 2},
                                         {"UINT32", 4},
                                         {"UINT64", 8},
                                         {"INT8", 1},
                                         {"INT16", 2},
                                         {"INT32", 4},
                                         {"INT64", 8},
                                         {"FP16", 2},
                                         {"FP32", 4},
                                         {"FP64", 8},
                                         {"BYTES", 0},
                                         {"BF16", 2}}};

const Row& row(DataType type) { return kTypes.at(static_cast<std::size_t>(type) - 1); }

}  // namespace

std::size_t element_size(DataType type) { return row(type).size; }
std::string_view datatype_name(DataType type) { return row(type).name; }

Result<DataType> parse_datatype(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes.at(i).name == name) return static_cast<DataType>(i + 1);
  }
  return invalid("bad_datatype",
                 fmt::format("'{}' is not a datatype; known are BOOL, UINT8, UINT16, UINT32, UINT64, INT8, "
                             "INT16, INT32, INT64, FP16, BF16, FP32, FP64, BYTES",
                             name.substr(0, 64)));
}

Result<DataType> datatype_from_wire(std::uint8_t value) {
  if (value >= 1 && value <= kTypes.size()) return static_cast<DataType>(value);
  return invalid("bad_datatype", fmt::format("{} is not a datatype of the wire protocol", value));
}

bool is_integer(DataType type) { return type >= DataType::kUint8 && type <= DataType::kInt64; }

}  // namespace tonnage::tensor
