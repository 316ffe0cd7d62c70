// SPDX-License-Identifier: Apache-2.0
#include "wire/load_doc.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "tensor/shape.h"
#include "wire/messages.h"

namespace tonnage::wire {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxThreads = 1024;

Status bad(std::string detail) { return invalid("bad_load_doc", std::move(detail)); }

Json to_value(const std::vector<TensorDoc>& tensors) {
  Json list = Json::array();
  for (const TensorDoc& tensor : tensors) {
    Json value = {
        {"name", tensor.name}, {"datatype", tensor::datatype_name(tensor.type)}, {"shape", tensor.dims}};
    if (tensor.range) value["range"] = {tensor.range->min, tensor.range->max};
    list.push_back(std::move(value));
  }
  return list;
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Result<Json> parse_object(std::string_view text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return bad("the document is not a JSON object");
  return value;
}

// The readers below leave `into` as it is when the key is absent.
Status read_text(const Json& from, const char* key, std::string& into) {
  const auto found = from.find(key);
  if (found == from.end()) return Status::ok();
  if (!found->is_string()) return bad(fmt::format("{} is not a string", key));
  into = found->get<std::string>();
  return Status::ok();
}

Status read_number(const Json& from, const char* key, std::uint64_t& into) {
  const auto found = from.find(key);
  if (found == from.end()) return Status::ok();
  if (!found->is_number_unsigned()) return bad(fmt::format("{} is not a whole number from 0 on", key));
  into = found->get<std::uint64_t>();
  return Status::ok();
}

Status read_texts(const Json& from, const char* key, std::map<std::string, std::string>& into) {
  const auto found = from.find(key);
  if (found == from.end()) return Status::ok();
  if (!found->is_object()) return bad(fmt::format("{} is not an object", key));
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) return bad(fmt::format("{}.{} is not a string", key, name));
    into[name] = value.get<std::string>();
  }
  return Status::ok();
}

Result<std::int64_t> read_dim(const Json& value) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest;
  if (!value.is_number_integer() || is_too_large || value.get<std::int64_t>() < -1) {
    return bad("a dim is not -1 or a whole number from 0 on");
  }
  return value.get<std::int64_t>();
}

Status read_range(const Json& from, std::optional<ValueRange>& into) {
  const auto found = from.find("range");
  if (found == from.end()) return Status::ok();
  const auto is_int64 = [](const Json& value) {
    return value.is_number_integer() &&
           !(value.is_number_unsigned() &&
             value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  };
  if (!found->is_array() || found->size() != 2 || !is_int64((*found)[0]) || !is_int64((*found)[1]))
    return bad("range is not a list of two whole numbers");
  into = ValueRange{(*found)[0].get<std::int64_t>(), (*found)[1].get<std::int64_t>()};
  return Status::ok();
}

Result<TensorDoc> read_tensor(const Json& from) {
  if (!from.is_object()) return bad("it is not an object");
  TensorDoc tensor;
  TONNAGE_TRY(read_text(from, "name", tensor.name));
  if (tensor.name.empty()) return bad("it has no name");
  std::string datatype;
  TONNAGE_TRY(read_text(from, "datatype", datatype));
  const auto type = tensor::parse_datatype(datatype);
  if (!type.is_ok()) return bad(type.status().detail());
  tensor.type = *type;
  auto shape = from.find("shape");
  if (shape == from.end()) shape = from.find("dims");  // as model.toml and an export's config.json say
  if (shape == from.end() || !shape->is_array()) return bad("shape is not a list");
  if (shape->size() > tensor::kMaxRank) return bad("shape has more than eight dims");
  for (const Json& value : *shape) {
    TONNAGE_ASSIGN(const std::int64_t dim, read_dim(value));
    tensor.dims.push_back(dim);
  }
  TONNAGE_TRY(read_range(from, tensor.range));
  return tensor;
}

Status read_tensors(const Json& from, const char* key, std::vector<TensorDoc>& into) {
  const auto found = from.find(key);
  if (found == from.end()) return Status::ok();
  if (!found->is_array()) return bad(fmt::format("{} is not a list", key));
  if (found->size() > kMaxTensors) return bad(fmt::format("{} has more than {} tensors", key, kMaxTensors));
  std::set<std::string> names;
  for (const Json& value : *found) {
    auto tensor = read_tensor(value);
    if (!tensor.is_ok()) {
      return bad(fmt::format("{}[{}]: {}", key, into.size(), tensor.status().detail()));
    }
    if (!names.insert(tensor->name).second) return bad(fmt::format("{} names '{}' twice", key, tensor->name));
    into.push_back(std::move(tensor).value());
  }
  return Status::ok();
}

}  // namespace

std::string to_json(const LoadDoc& doc) {
  return dump({{"model", doc.model},
               {"version", doc.version},
               {"route", doc.route},
               {"path", doc.path},
               {"threads", doc.threads},
               {"load_limit", doc.load_limit.count()},
               {"inputs", to_value(doc.inputs)},
               {"outputs", to_value(doc.outputs)},
               {"options", Json(doc.options)}});
}

std::string to_json(const LoadedDoc& doc) {
  return dump({{"runtime", doc.runtime},
               {"inputs", to_value(doc.inputs)},
               {"outputs", to_value(doc.outputs)},
               {"facts", Json(doc.facts)}});
}

Result<LoadDoc> parse_load_doc(std::string_view json) {
  TONNAGE_ASSIGN(const Json from, parse_object(json));
  LoadDoc doc;
  TONNAGE_TRY(read_text(from, "model", doc.model));
  TONNAGE_TRY(read_text(from, "version", doc.version));
  TONNAGE_TRY(read_text(from, "route", doc.route));
  TONNAGE_TRY(read_text(from, "path", doc.path));
  std::uint64_t threads = doc.threads;
  TONNAGE_TRY(read_number(from, "threads", threads));
  if (threads < 1 || threads > kMaxThreads) return bad(fmt::format("threads is not in 1..{}", kMaxThreads));
  doc.threads = static_cast<std::uint32_t>(threads);
  std::uint64_t load_limit = 0;
  TONNAGE_TRY(read_number(from, "load_limit", load_limit));
  doc.load_limit = Bytes(load_limit);
  TONNAGE_TRY(read_tensors(from, "inputs", doc.inputs));
  TONNAGE_TRY(read_tensors(from, "outputs", doc.outputs));
  TONNAGE_TRY(read_texts(from, "options", doc.options));
  return doc;
}

Result<LoadedDoc> parse_loaded_doc(std::string_view json) {
  TONNAGE_ASSIGN(const Json from, parse_object(json));
  LoadedDoc doc;
  TONNAGE_TRY(read_text(from, "runtime", doc.runtime));
  TONNAGE_TRY(read_tensors(from, "inputs", doc.inputs));
  TONNAGE_TRY(read_tensors(from, "outputs", doc.outputs));
  TONNAGE_TRY(read_texts(from, "facts", doc.facts));
  return doc;
}

}  // namespace tonnage::wire
