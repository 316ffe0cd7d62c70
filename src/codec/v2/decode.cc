// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "codec/elements.h"
#include "codec/inputs.h"
#include "codec/json/reader.h"
#include "codec/v2/parameters.h"
#include "codec/v2/raw.h"
#include "codec/v2/v2.h"
#include "tensor/strings.h"

namespace tonnage::codec::v2 {
namespace {

using tensor::DataType;

constexpr std::size_t kTextInput = ~std::size_t{0};

// One entry of "inputs", as far as it was read.
struct Entry {
  std::string name;
  std::optional<std::size_t> index;  // in the spec; kTextInput for the text of a tokenizer model
  std::optional<tensor::Shape> shape;
  std::optional<DataType> type;
  InputParameters parameters;
  std::optional<JsonReader::Bookmark> data;  // met before it could be read
  std::optional<request::RowsTensor> values;
  unsigned keys_seen = 0;
};

class Decoder {
 public:
  Decoder(const model::ModelSpec& spec, std::string_view json, ByteView binary)
      : spec_(spec), reader_(json), rest_(binary), sent_(spec.inputs.size()) {}

  Result<Decoded> run() {
    TONNAGE_TRY(read_root());
    if (!rest_.empty()) {
      return invalid("leftover_bytes",
                     fmt::format("{} bytes are left behind the last binary tensor", rest_.size()));
    }
    TONNAGE_TRY(finish_outputs());
    TONNAGE_TRY(finish_inputs());
    return std::move(decoded_);
  }

 private:
  Status read_root() {
    if (!reader_.enter_object()) return reader_.status();
    bool has_inputs = false;
    for (std::string_view key; reader_.next_key(key);) {
      if (key == "inputs") {
        if (std::exchange(has_inputs, true)) return duplicate_key("inputs");
        TONNAGE_TRY(read_list("inputs", [&] { return read_input(); }));
      } else if (key == "outputs" && reader_.peek() != JsonKind::kNull) {
        TONNAGE_TRY(read_list("outputs", [&] { return read_output(); }));
      } else if (key == "parameters" && reader_.peek() != JsonKind::kNull) {
        TONNAGE_TRY(read_request_parameters(reader_, parameters_));
      } else if (key == "id" && reader_.peek() != JsonKind::kNull) {
        TONNAGE_TRY(read_text("id", decoded_.request.id));
      } else if (!reader_.skip_value()) {
        return reader_.status();
      }
    }
    if (!reader_.finish()) return reader_.status();
    if (!has_inputs) return invalid("missing_inputs", "the request has no list of inputs");
    return Status::ok();
  }

  template <typename Fn>
  Status read_list(std::string_view name, Fn read_one) {
    if (reader_.peek() != JsonKind::kArray) return wrong_kind(name, "a list of objects");
    (void)reader_.enter_array();
    while (reader_.next_element()) {
      if (reader_.peek() != JsonKind::kObject) return wrong_kind(name, "a list of objects");
      TONNAGE_TRY(read_one());
    }
    return reader_.status();
  }

  Status read_text(std::string_view name, std::string& text) {
    if (reader_.peek() != JsonKind::kString) return wrong_kind(name, "a string");
    std::string_view view;
    if (!reader_.read_string(view)) return reader_.status();
    text = view;
    return Status::ok();
  }

  Status read_input() {
    Entry entry;
    (void)reader_.enter_object();
    for (std::string_view key; reader_.next_key(key);) TONNAGE_TRY(read_input_key(entry, key));
    if (!reader_.is_ok()) return reader_.status();
    if (entry.name.empty()) return invalid("missing_name", "an input has no name");
    if (!entry.shape) return incomplete(entry, "shape");
    if (!entry.type) return incomplete(entry, "datatype");
    TONNAGE_TRY(resolve(entry));
    if (entry.parameters.binary_size) {
      if (entry.data || entry.values) return two_sources(entry);
      TONNAGE_TRY(take_binary(entry));
    } else if (entry.data) {
      const JsonReader::Bookmark end = reader_.bookmark();
      reader_.go_to(*entry.data);
      TONNAGE_TRY(read_values(entry));
      reader_.go_to(end);
    } else if (!entry.values) {
      return invalid("no_data", fmt::format("input '{}' has neither data nor binary_data_size", entry.name));
    }
    return keep(std::move(entry));
  }

  Status read_input_key(Entry& entry, std::string_view key) {
    static constexpr std::string_view kKeys[] = {"name", "shape", "datatype", "parameters", "data"};
    const auto which =
        static_cast<unsigned>(std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys));
    if (which == std::size(kKeys)) return reader_.skip_value() ? Status::ok() : reader_.status();
    // A second shape or a second data would be checked against another first one.
    if ((entry.keys_seen & (1U << which)) != 0) return duplicate_key(kKeys[which]);
    entry.keys_seen |= 1U << which;
    switch (which) {
      case 0: return read_text("name", entry.name);
      case 1: return read_shape(entry);
      case 2: return read_datatype(entry);
      case 3:
        if (reader_.peek() == JsonKind::kNull) return reader_.skip_value() ? Status::ok() : reader_.status();
        return read_input_parameters(reader_, entry.name, entry.parameters);
      default: break;
    }
    if (!entry.name.empty() && entry.shape && entry.type) {
      TONNAGE_TRY(resolve(entry));
      return read_values(entry);
    }
    entry.data = reader_.bookmark();
    return reader_.skip_value() ? Status::ok() : reader_.status();
  }

  Status read_shape(Entry& entry) {
    if (reader_.peek() != JsonKind::kArray)
      return in_input(entry, wrong_kind("shape", "a list of whole numbers"));
    (void)reader_.enter_array();
    std::array<std::int64_t, tensor::kMaxRank + 1> dims{};
    std::size_t rank = 0;
    while (reader_.next_element()) {
      if (rank == dims.size()) break;
      if (reader_.peek() != JsonKind::kNumber)
        return in_input(entry, wrong_kind("shape", "a list of whole numbers"));
      JsonNumber number;
      if (!reader_.read_number(number)) return reader_.status();
      const char* const end = number.text.data() + number.text.size();
      const auto [stop, error] = std::from_chars(number.text.data(), end, dims.at(rank));
      if (error != std::errc() || stop != end) {
        return in_input(
            entry, invalid("bad_dim", fmt::format("dim {} is {}; a dim is a whole number, 0 or more", rank,
                                                  number.text.substr(0, 40))));
      }
      ++rank;
    }
    if (!reader_.is_ok()) return reader_.status();
    const auto shape = tensor::Shape::make(std::span(dims).first(rank));
    if (!shape) return in_input(entry, shape.status());
    entry.shape = *shape;
    return Status::ok();
  }

  Status read_datatype(Entry& entry) {
    if (reader_.peek() != JsonKind::kString) return in_input(entry, wrong_kind("datatype", "a string"));
    std::string_view name;
    if (!reader_.read_string(name)) return reader_.status();
    const auto type = tensor::parse_datatype(name);
    if (!type) return in_input(entry, type.status());
    entry.type = *type;
    return Status::ok();
  }

  // The input's place in the spec; shape and type are checked before data is read.
  Status resolve(Entry& entry) {
    if (entry.index) return Status::ok();
    if (spec_.tokenizer && entry.name == text_input().name) {
      entry.index = kTextInput;
      if (has_text_) return invalid("duplicate_input", fmt::format("input '{}' is there twice", entry.name));
      TONNAGE_TRY(check_type(entry, text_input()));
      if (entry.shape->rank() == 1)
        return check_row_count(spec_, static_cast<std::uint64_t>(entry.shape->dim(0)));
      return check_shape(spec_, text_input(), *entry.shape);
    }
    entry.index = spec_.find_input(entry.name);
    if (!entry.index) return unknown_input(entry.name);
    if (sent_[*entry.index])
      return invalid("duplicate_input", fmt::format("input '{}' is there twice", entry.name));
    TONNAGE_TRY(check_type(entry, spec_.inputs[*entry.index]));
    return check_shape(spec_, spec_.inputs[*entry.index], *entry.shape);
  }

  static Status check_type(const Entry& entry, const model::TensorSpec& input) {
    if (*entry.type == input.type) return Status::ok();
    return invalid("wrong_datatype",
                   fmt::format("input '{}' is sent as {}, the model takes {}", entry.name,
                               tensor::datatype_name(*entry.type), tensor::datatype_name(input.type)));
  }

  Status read_values(Entry& entry) {
    const TensorHead head{entry.name, *entry.type, *entry.shape};
    if (reader_.peek() != JsonKind::kArray) return in_input(entry, wrong_kind("data", "a list"));
    TONNAGE_ASSIGN(entry.values, read_tensor(reader_, head));
    return Status::ok();
  }

  Status take_binary(Entry& entry) {
    const std::uint64_t size = *entry.parameters.binary_size;
    if (size > rest_.size()) {
      return invalid("too_few_bytes",
                     fmt::format("input '{}' has binary_data_size {}, {} bytes are left in the body",
                                 entry.name, size, rest_.size()));
    }
    const TensorHead head{entry.name, *entry.type, *entry.shape};
    TONNAGE_ASSIGN(entry.values, copy_tensor(rest_.first(size), head));
    rest_ = rest_.subspan(size);
    return Status::ok();
  }

  Status keep(Entry entry) {
    if (*entry.index != kTextInput) {
      sent_[*entry.index] = SentInput{*entry.shape, std::move(*entry.values)};
      return Status::ok();
    }
    has_text_ = true;
    ByteView strings = entry.values->data.view();
    while (const auto text = tensor::take_string(strings)) decoded_.texts.emplace_back(*text);
    return Status::ok();
  }

  Status read_output() {
    OutputEntry entry;
    (void)reader_.enter_object();
    for (std::string_view key; reader_.next_key(key);) {
      if (key == "name") {
        TONNAGE_TRY(read_text("name", entry.name));
      } else if (key == "parameters" && reader_.peek() != JsonKind::kNull) {
        TONNAGE_TRY(read_output_parameters(reader_, entry));
      } else if (!reader_.skip_value()) {
        return reader_.status();
      }
    }
    if (!reader_.is_ok()) return reader_.status();
    outputs_.push_back(std::move(entry));
    return check_output(spec_, outputs_);
  }

  Status finish_outputs() {
    decoded_.timeout = parameters_.timeout;
    decoded_.request.priority = parameters_.priority;
    decoded_.format.form = BodyForm::kV2;
    decoded_.format.binary_by_default = parameters_.binary_output;
    TONNAGE_ASSIGN(decoded_.format.selections, select_outputs(spec_, outputs_, parameters_.binary_output));
    return Status::ok();
  }

  Status finish_inputs() {
    if (!has_text_) return settle(spec_, std::move(sent_), decoded_.request);
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      if (!sent_[i]) continue;
      return invalid("text_and_ids", fmt::format("inputs '{}' and '{}' exclude each other", text_input().name,
                                                 spec_.inputs[i].name));
    }
    decoded_.request.rows = static_cast<std::uint32_t>(decoded_.texts.size());
    return Status::ok();
  }

  Status unknown_input(std::string_view name) const {
    std::vector<std::string_view> known;
    if (spec_.tokenizer) known.push_back(text_input().name);
    for (const model::TensorSpec& input : spec_.inputs) known.push_back(input.name);
    return invalid("unknown_input", fmt::format("input '{}' is unknown; the model '{}' takes {}",
                                                name.substr(0, 64), spec_.name, fmt::join(known, ", ")));
  }
  static Status wrong_kind(std::string_view name, std::string_view wanted) {
    return invalid("bad_request", fmt::format("'{}' must be {}", name, wanted));
  }
  static Status duplicate_key(std::string_view key) {
    return invalid("duplicate_key", fmt::format("'{}' is there twice in one object", key));
  }
  static Status in_input(const Entry& entry, const Status& status) {
    return invalid(status.reason(), fmt::format("input '{}': {}", entry.name, status.detail()));
  }
  static Status incomplete(const Entry& entry, std::string_view key) {
    return invalid("bad_request", fmt::format("input '{}' has no {}", entry.name, key));
  }
  static Status two_sources(const Entry& entry) {
    return invalid("two_sources", fmt::format("input '{}' has both data and binary_data_size", entry.name));
  }

  const model::ModelSpec& spec_;
  JsonReader reader_;
  ByteView rest_;
  std::vector<std::optional<SentInput>> sent_;
  std::vector<OutputEntry> outputs_;
  RequestParameters parameters_;
  bool has_text_ = false;
  Decoded decoded_;
};

}  // namespace

Result<Decoded> decode_infer(const model::ModelSpec& spec, std::string& body,
                             std::optional<std::size_t> json_length) {
  if (json_length == std::size_t{0}) return decode_raw(spec, body);
  const std::size_t length = json_length.value_or(body.size());
  if (length > body.size()) return invalid("json_length", "the JSON part is longer than the body");
  const std::string_view text(body);
  return Decoder(spec, text.substr(0, length), as_bytes(text.substr(length))).run();
}

}  // namespace tonnage::codec::v2
