// SPDX-License-Identifier: Apache-2.0
#include "codec/v2/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "codec/elements.h"

namespace tonnage::codec::v2 {
namespace {

Status bad_parameter(std::string_view name, std::string_view wanted) {
  return invalid("bad_parameter", fmt::format("parameter '{}' must be {}", name, wanted));
}

Status shared_memory(std::string_view tensor) {
  return {Code::kUnimplemented, "shared_memory",
          fmt::format("'{}' asks for a shared memory region; this server takes tensors in the body only",
                      tensor)};
}

Status read_count(JsonReader& reader, std::string_view name, std::uint64_t& value) {
  if (reader.peek() != JsonKind::kNumber) return bad_parameter(name, "a whole number, 0 or more");
  JsonNumber number;
  if (!reader.read_number(number)) return reader.status();
  const char* const end = number.text.data() + number.text.size();
  const auto [stop, error] = std::from_chars(number.text.data(), end, value);
  if (error != std::errc() || stop != end)
    return bad_parameter(name, "a whole number, 0 or more, below 2^64");
  return Status::ok();
}

Status read_flag(JsonReader& reader, std::string_view name, bool& value) {
  if (reader.peek() != JsonKind::kBool) return bad_parameter(name, "true or false");
  return reader.read_bool(value) ? Status::ok() : reader.status();
}

// Calls read(key) for each key; read says false for keys that it does not know.
template <typename Fn>
Status read_object(JsonReader& reader, Fn read) {
  if (reader.peek() != JsonKind::kObject) return bad_parameter("parameters", "an object");
  (void)reader.enter_object();
  for (std::string_view key; reader.next_key(key);) {
    TONNAGE_ASSIGN(const bool is_known, read(key));
    if (!is_known && !reader.skip_value()) return reader.status();
  }
  return reader.status();
}

Result<bool> known(Status status) {
  if (!status.is_ok()) return status;
  return true;
}

// Requests of a sequence need their own worker; 0 and "" mean no sequence.
Status refuse_sequence(JsonReader& reader) {
  bool is_none = false;
  if (reader.peek() == JsonKind::kNumber) {
    JsonNumber number;
    is_none = reader.read_number(number) && number.text == "0";
  } else if (reader.peek() == JsonKind::kString) {
    std::string_view text;
    is_none = reader.read_string(text) && text.empty();
  }
  if (!reader.is_ok()) return reader.status();
  if (is_none) return Status::ok();
  return {Code::kUnimplemented, "sequences", "this server has no stateful sequences; leave sequence_id out"};
}

Status read_timeout(JsonReader& reader, std::optional<Duration>& timeout) {
  std::uint64_t micros = 0;
  TONNAGE_TRY(read_count(reader, "timeout", micros));
  // Anything above a century is one; the server's own deadline is shorter anyway.
  constexpr std::uint64_t kMost = 3'155'760'000'000'000;
  if (micros > 0) timeout = microseconds(std::min(micros, kMost));
  return Status::ok();
}

Status read_priority(JsonReader& reader, std::uint8_t& priority) {
  std::uint64_t value = 0;
  TONNAGE_TRY(read_count(reader, "priority", value));
  priority =
      static_cast<std::uint8_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint8_t>::max()));
  return Status::ok();
}

}  // namespace

Status read_request_parameters(JsonReader& reader, RequestParameters& parameters) {
  return read_object(reader, [&](std::string_view key) -> Result<bool> {
    if (key == "timeout") return known(read_timeout(reader, parameters.timeout));
    if (key == "priority") return known(read_priority(reader, parameters.priority));
    if (key == "binary_data_output") return known(read_flag(reader, key, parameters.binary_output));
    if (key == "sequence_id") return known(refuse_sequence(reader));
    if (key.starts_with("triton_")) {
      return invalid("reserved_parameter", fmt::format("parameter '{}' is reserved", key.substr(0, 64)));
    }
    return false;
  });
}

Status read_input_parameters(JsonReader& reader, std::string_view input, InputParameters& parameters) {
  return read_object(reader, [&](std::string_view key) -> Result<bool> {
    if (key == "shared_memory_region") return shared_memory(input);
    if (key != "binary_data_size") return false;
    return known(read_count(reader, key, parameters.binary_size.emplace()));
  });
}

Status read_output_parameters(JsonReader& reader, OutputEntry& output) {
  return read_object(reader, [&](std::string_view key) -> Result<bool> {
    if (key == "shared_memory_region") return shared_memory(output.name);
    if (key == "binary_data") return known(read_flag(reader, key, output.binary.emplace()));
    if (key != "classification") return false;
    std::uint64_t top = 0;
    TONNAGE_TRY(read_count(reader, key, top));
    output.classification =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(top, std::numeric_limits<std::uint32_t>::max()));
    return true;
  });
}

const model::TensorSpec& text_input() {
  static const model::TensorSpec text = [] {
    model::TensorSpec spec;
    spec.name = "text";
    spec.type = tensor::DataType::kBytes;
    spec.dims = {-1, 1};
    return spec;
  }();
  return text;
}

Status check_output(const model::ModelSpec& spec, const std::vector<OutputEntry>& outputs) {
  const OutputEntry& last = outputs.back();
  if (last.name.empty()) return invalid("missing_name", "an output has no name");
  const auto found = std::ranges::find(spec.outputs, last.name, &model::TensorSpec::name);
  if (found == spec.outputs.end()) {
    return invalid("unknown_output", fmt::format("output '{}' is unknown to the model '{}'",
                                                 last.name.substr(0, 64), spec.name));
  }
  if (std::ranges::count(outputs, last.name, &OutputEntry::name) > 1) {
    return invalid("duplicate_output", fmt::format("output '{}' is asked for twice", last.name));
  }
  if (last.classification > 0 && found->type == tensor::DataType::kBytes) {
    return invalid("bad_parameter",
                   fmt::format("output '{}' is BYTES; classification needs numbers", last.name));
  }
  return Status::ok();
}

Result<std::vector<request::OutputSelection>> select_outputs(const model::ModelSpec& spec,
                                                             const std::vector<OutputEntry>& outputs,
                                                             bool binary_by_default) {
  std::vector<request::OutputSelection> selections;
  const auto check_json = [&](const model::TensorSpec& output, bool is_binary, std::uint32_t classification) {
    if (is_binary || classification > 0 || is_json_type(output.type)) return Status::ok();
    return invalid("not_in_json",
                   fmt::format("output '{}' is {}, which JSON cannot carry; ask for binary_data", output.name,
                               tensor::datatype_name(output.type)));
  };
  for (const OutputEntry& entry : outputs) {
    const bool is_binary = entry.binary.value_or(binary_by_default);
    const auto found = std::ranges::find(spec.outputs, entry.name, &model::TensorSpec::name);
    TONNAGE_TRY(check_json(*found, is_binary, entry.classification));
    selections.push_back({entry.name, is_binary, entry.classification});
  }
  if (outputs.empty()) {
    for (const model::TensorSpec& output : spec.outputs)
      TONNAGE_TRY(check_json(output, binary_by_default, 0));
  }
  return selections;
}

}  // namespace tonnage::codec::v2
