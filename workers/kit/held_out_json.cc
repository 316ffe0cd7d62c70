// SPDX-License-Identifier: Apache-2.0
// The JSON of held-out rows: {"inputs": [{name, datatype, dims, pad}], "outputs": [{name, datatype, dims}],
// "rows": [{"length": n, "inputs": {name: [values]}, "outputs": {name: [values]}}]}.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "kit/elements.h"
#include "kit/held_out.h"
#include "tensor/shape.h"

namespace tonnage::kit {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostRows = 4096;
constexpr std::uint32_t kLongest = 1U << 20U;

Status bad(std::string detail) { return invalid("bad_held_out", std::move(detail)); }

// Null where the key is missing.
Json member(const Json& from, const char* key) {
  return from.is_object() && from.contains(key) ? from.at(key) : Json();
}

Result<HeldOutTensor> read_tensor(const Json& from) {
  HeldOutTensor tensor;
  const Json name = member(from, "name");
  const Json datatype = member(from, "datatype");
  const Json dims = member(from, "dims");
  if (!name.is_string() || !datatype.is_string() || !dims.is_array())
    return bad("a tensor lacks name, datatype or dims");
  tensor.name = name.get<std::string>();
  TONNAGE_ASSIGN(tensor.type, tensor::parse_datatype(datatype.get<std::string>()));
  if (tensor.type == tensor::DataType::kBytes) return bad("a tensor is of type BYTES");
  for (const Json& dim : dims) {
    if (!dim.is_number_integer() || dim.get<std::int64_t>() < -1)
      return bad("a dim is not -1 or a whole number");
    tensor.dims.push_back(dim.get<std::int64_t>());
  }
  if (tensor.dims.empty() || tensor.dims[0] != -1) return bad("the first dim of a tensor is not -1");
  if (const Json pad = member(from, "pad"); pad.is_number_integer()) tensor.pad = pad.get<std::int64_t>();
  TONNAGE_TRY(tensor::Shape::make(tensor.dims_at(1, kLongest)).status());
  return tensor;
}

Status read_tensors(const Json& from, std::vector<HeldOutTensor>& into) {
  if (!from.is_array() || from.empty()) return bad("inputs or outputs are not a list with tensors");
  for (const Json& each : from) {
    TONNAGE_ASSIGN(HeldOutTensor tensor, read_tensor(each));
    into.push_back(std::move(tensor));
  }
  return Status::ok();
}

// The list of values that `tensor` has in a row; as many as its shape has elements.
Result<Json> values_of(const Json& row, const char* key, const HeldOutTensor& tensor, std::uint32_t length) {
  Json values = member(member(row, key), tensor.name.c_str());
  const std::uint64_t wanted = tensor::Shape::make(tensor.dims_at(1, length)).value().elements();
  if (!values.is_array() || values.size() != wanted) {
    return bad(fmt::format("'{}' has {} values, expected {}", tensor.name, values.size(), wanted));
  }
  for (const Json& value : values) {
    if (!value.is_number() && !value.is_boolean())
      return bad(fmt::format("'{}' holds something that is not a number", tensor.name));
  }
  return values;
}

template <typename T>
T number(const Json& value) {
  return value.is_boolean() ? static_cast<T>(value.get<bool>()) : value.get<T>();
}

Result<HeldOutRow> read_row(const Json& from, const HeldOut& held_out) {
  HeldOutRow row;
  const Json length = member(from, "length");
  if (!length.is_number_unsigned() || length.get<std::uint64_t>() > kLongest)
    return bad(fmt::format("length is not a whole number up to {}", kLongest));
  row.length = length.get<std::uint32_t>();
  for (const HeldOutTensor& tensor : held_out.inputs) {
    TONNAGE_ASSIGN(const Json values, values_of(from, "inputs", tensor, row.length));
    row.inputs.emplace_back(values.size() * tensor::element_size(tensor.type));
    bool is_known = false;
    visit_elements(tensor.type, row.inputs.back().mutable_view(), [&]<typename T>(std::span<T> elements) {
      is_known = true;
      for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = number<T>(values[i]);
    });
    if (!is_known) return bad(fmt::format("'{}' is of a type that has no numbers here", tensor.name));
  }
  for (const HeldOutTensor& tensor : held_out.outputs) {
    std::vector<float>& answers = row.outputs.emplace_back();
    if (tensor.type != tensor::DataType::kFp32) continue;
    TONNAGE_ASSIGN(const Json values, values_of(from, "outputs", tensor, row.length));
    for (const Json& value : values) answers.push_back(number<float>(value));
  }
  return row;
}

}  // namespace

Result<HeldOut> parse_held_out(std::string_view json) {
  const Json from = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!from.is_object()) return bad("it is not a JSON object");
  HeldOut held_out;
  TONNAGE_TRY(read_tensors(member(from, "inputs"), held_out.inputs));
  TONNAGE_TRY(read_tensors(member(from, "outputs"), held_out.outputs));
  const Json rows = member(from, "rows");
  if (!rows.is_array() || rows.empty() || rows.size() > kMostRows)
    return bad(fmt::format("rows is not a list of 1 to {} rows", kMostRows));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto row = read_row(rows[i], held_out);
    if (!row.is_ok()) return bad(fmt::format("rows[{}]: {}", i, row.status().detail()));
    held_out.rows.push_back(std::move(row).value());
  }
  return held_out;
}

}  // namespace tonnage::kit
