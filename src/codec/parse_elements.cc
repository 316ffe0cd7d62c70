// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codec/elements.h"
#include "tensor/strings.h"

namespace tonnage::codec {
namespace {

using tensor::DataType;

template <typename T>
Parsed parse_whole(std::string_view token, MutableByteView out) {
  T value = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, value);
  if (error == std::errc::result_out_of_range) return Parsed::kOutOfRange;
  if (error != std::errc() || stop != end) {
    // "-1" has no beginning that an unsigned type could read, "1.5" stops early.
    double real = 0;
    const auto [real_stop, real_error] = std::from_chars(token.data(), end, real);
    if (real_error == std::errc::invalid_argument || real_stop != end || real - real != 0)
      return Parsed::kNotANumber;
    return token.find_first_of(".eE") != std::string_view::npos ? Parsed::kNotWhole : Parsed::kOutOfRange;
  }
  std::memcpy(out.data(), &value, sizeof value);
  return Parsed::kOk;
}

template <typename T>
Parsed parse_real(std::string_view token, MutableByteView out) {
  T value = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end) return Parsed::kNotANumber;
  if (error == std::errc::result_out_of_range) {
    // from_chars tells overflow and underflow alike; a value too small is zero, as everywhere.
    const double wide = std::strtod(std::string(token).c_str(), nullptr);
    if (wide > 1 || wide < -1) return Parsed::kOutOfRange;
    value = static_cast<T>(wide);
  }
  // "nan" and "inf" are numbers to from_chars.
  if (!(value - value == 0)) return Parsed::kNotANumber;
  std::memcpy(out.data(), &value, sizeof value);
  return Parsed::kOk;
}

Status at_element(const TensorHead& head, std::uint64_t index, const Status& status) {
  const std::uint64_t row_elements = head.shape.elements() / static_cast<std::uint64_t>(head.shape.dim(0));
  return invalid(status.reason(), fmt::format("input '{}', row {}, position {}: {}", head.name,
                                              index / row_elements, index % row_elements, status.detail()));
}

// Reads the elements of one array, checking on the way that its nesting is that of the shape.
class ArrayWalk {
 public:
  ArrayWalk(JsonReader& reader, const TensorHead& head) : reader_(reader), head_(head) {
    std::uint64_t stride = 1;
    for (std::size_t i = head.shape.rank(); i-- > 0;) {
      stride *= static_cast<std::uint64_t>(head.shape.dim(i));
      strides_.at(i) = stride;
    }
  }

  // read_one(index, why) reads one element from the reader; a Status per element would cost half the time.
  template <typename Fn>
  Status run(Fn read_one) {
    if (!reader_.enter_array()) return named(reader_.status());
    while (true) {
      if (!reader_.next_element()) {
        if (!reader_.is_ok()) return named(reader_.status());
        if (level_ == 0) break;
        if (count_ - starts_.at(level_) != strides_.at(level_)) return wrong_nesting();
        --level_;
      } else if (reader_.peek() == JsonKind::kArray) {
        TONNAGE_TRY(descend());
      } else {
        if (count_ == head_.shape.elements()) return wrong_count("more");
        if (Status why; !read_one(count_, why)) return at_element(head_, count_, why);
        ++count_;
      }
    }
    return count_ == head_.shape.elements() ? Status::ok() : wrong_count(fmt::to_string(count_));
  }

 private:
  Status descend() {
    if (level_ + 1 >= head_.shape.rank() || count_ % strides_.at(level_ + 1) != 0) return wrong_nesting();
    starts_.at(++level_) = count_;
    return reader_.enter_array() ? Status::ok() : named(reader_.status());
  }
  Status named(const Status& status) const {
    return invalid(status.reason(), fmt::format("input '{}': {}", head_.name, status.detail()));
  }
  Status wrong_count(std::string_view found) const {
    return invalid("element_count",
                   fmt::format("input '{}': shape {} has {} elements, its data has {}", head_.name,
                               head_.shape.to_string(), head_.shape.elements(), found));
  }
  Status wrong_nesting() const {
    return invalid("element_count",
                   fmt::format("input '{}': its data is nested otherwise than shape {}; nest it as "
                               "the shape says or send it flat",
                               head_.name, head_.shape.to_string()));
  }

  JsonReader& reader_;
  const TensorHead& head_;
  std::array<std::uint64_t, tensor::kMaxRank> strides_{};  // elements of dims i and behind
  std::array<std::uint64_t, tensor::kMaxRank> starts_{};
  std::size_t level_ = 0;
  std::uint64_t count_ = 0;
};

Result<request::RowsTensor> read_strings(JsonReader& reader, const TensorHead& head) {
  std::vector<std::byte> bytes;
  request::RowsTensor tensor;
  const auto rows = static_cast<std::uint64_t>(head.shape.dim(0));
  const std::uint64_t row_elements = head.shape.elements() / rows;
  TONNAGE_TRY(ArrayWalk(reader, head).run([&](std::uint64_t index, Status& why) {
    if (index % row_elements == 0) tensor.offsets.push_back(bytes.size());
    std::string_view text;
    if (!read_string_element(reader, text, why)) return false;
    tensor::append_string(bytes, text);
    return true;
  }));
  tensor.offsets.resize(rows, bytes.size());
  tensor.offsets.push_back(bytes.size());
  tensor.data = tensor::Buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.data.mutable_view().data(), bytes.data(), bytes.size());
  return tensor;
}

Result<request::RowsTensor> copy_strings(ByteView bytes, const TensorHead& head) {
  request::RowsTensor tensor;
  const auto rows = static_cast<std::uint64_t>(head.shape.dim(0));
  const std::uint64_t row_elements = head.shape.elements() / rows;
  std::size_t used = 0;
  for (std::uint64_t row = 0; row < rows && used <= bytes.size(); ++row) {
    tensor.offsets.push_back(used);
    const auto size = tensor::strings_size(bytes.subspan(used), row_elements);
    if (!size) {
      return invalid("element_count",
                     fmt::format("input '{}': {} bytes end within the {} strings of shape {}", head.name,
                                 bytes.size(), head.shape.elements(), head.shape.to_string()));
    }
    used += *size;
  }
  if (used != bytes.size()) {
    return invalid("element_count",
                   fmt::format("input '{}': {} bytes are left behind the {} strings of shape {}", head.name,
                               bytes.size() - used, head.shape.elements(), head.shape.to_string()));
  }
  tensor.offsets.push_back(used);
  tensor.data = tensor::Buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.data.mutable_view().data(), bytes.data(), bytes.size());
  return tensor;
}

// true and false, and the 0 and 1 that some clients send for them.
bool read_flag(JsonReader& reader, MutableByteView out, Status& why) {
  bool value = false;
  JsonNumber number;
  const JsonKind kind = reader.peek();
  if (kind == JsonKind::kBool && reader.read_bool(value)) {
    out[0] = static_cast<std::byte>(value);
    return true;
  }
  if (kind == JsonKind::kNumber && reader.read_number(number) && (number.text == "0" || number.text == "1")) {
    out[0] = static_cast<std::byte>(number.text == "1");
    return true;
  }
  why = reader.is_ok() ? invalid("bad_value", "true or false is expected") : reader.status();
  return false;
}

}  // namespace

Parsed parse_number(DataType type, std::string_view token, MutableByteView out) {
  switch (type) {
    case DataType::kUint8: return parse_whole<std::uint8_t>(token, out);
    case DataType::kUint16: return parse_whole<std::uint16_t>(token, out);
    case DataType::kUint32: return parse_whole<std::uint32_t>(token, out);
    case DataType::kUint64: return parse_whole<std::uint64_t>(token, out);
    case DataType::kInt8: return parse_whole<std::int8_t>(token, out);
    case DataType::kInt16: return parse_whole<std::int16_t>(token, out);
    case DataType::kInt32: return parse_whole<std::int32_t>(token, out);
    case DataType::kInt64: return parse_whole<std::int64_t>(token, out);
    case DataType::kFp32: return parse_real<float>(token, out);
    case DataType::kFp64: return parse_real<double>(token, out);
    default: return Parsed::kNotANumber;
  }
}

std::string describe(Parsed why, DataType type, std::string_view token) {
  const std::string_view shown = token.substr(0, 40);
  switch (why) {
    case Parsed::kNotWhole:
      return fmt::format("'{}' is not a whole number, {} is wanted", shown, tensor::datatype_name(type));
    case Parsed::kOutOfRange: return fmt::format("'{}' is outside {}", shown, tensor::datatype_name(type));
    default: return fmt::format("'{}' is not a number", shown);
  }
}

bool read_string_element(JsonReader& reader, std::string_view& text, Status& why) {
  if (reader.peek() == JsonKind::kString && reader.read_string(text)) return true;
  why = reader.is_ok() ? invalid("bad_value", "a string is expected") : reader.status();
  return false;
}

bool read_element(JsonReader& reader, DataType type, MutableByteView out, Status& why) {
  if (type == DataType::kBool) return read_flag(reader, out, why);
  JsonNumber number;
  if (reader.peek() != JsonKind::kNumber || !reader.read_number(number)) {
    why = reader.is_ok() ? invalid("bad_value", "a number is expected") : reader.status();
    return false;
  }
  const Parsed parsed = parse_number(type, number.text, out);
  if (parsed == Parsed::kOk) return true;
  why = invalid("bad_value", describe(parsed, type, number.text));
  return false;
}

Result<request::RowsTensor> read_tensor(JsonReader& reader, const TensorHead& head) {
  if (!is_json_type(head.type)) {
    return invalid("not_in_json", fmt::format("input '{}': {} cannot be sent as JSON, send it as binary data",
                                              head.name, tensor::datatype_name(head.type)));
  }
  // The shortest element is one character and a comma.
  if (head.shape.elements() > reader.remaining() / 2 + 1) {
    return invalid("element_count",
                   fmt::format("input '{}': shape {} has {} elements, more than the body can hold", head.name,
                               head.shape.to_string(), head.shape.elements()));
  }
  if (head.type == DataType::kBytes) return read_strings(reader, head);
  request::RowsTensor tensor;
  const std::size_t size = tensor::element_size(head.type);
  tensor.data = tensor::Buffer(head.shape.bytes_of(head.type).size());
  tensor.row_bytes = tensor.data.size() / static_cast<std::size_t>(head.shape.dim(0));
  const MutableByteView out = tensor.data.mutable_view();
  TONNAGE_TRY(ArrayWalk(reader, head).run([&](std::uint64_t index, Status& why) {
    return read_element(reader, head.type, out.subspan(index * size, size), why);
  }));
  return tensor;
}

Result<request::RowsTensor> copy_tensor(ByteView bytes, const TensorHead& head) {
  if (head.type == DataType::kBytes) return copy_strings(bytes, head);
  const Bytes wanted = head.shape.bytes_of(head.type);
  if (wanted.count() != bytes.size()) {
    return invalid("element_count", fmt::format("input '{}': {} bytes were sent, shape {} of {} takes {}",
                                                head.name, bytes.size(), head.shape.to_string(),
                                                tensor::datatype_name(head.type), wanted.count()));
  }
  if (head.type == DataType::kBool) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] > std::byte{1})
        return at_element(head, i, invalid("bad_value", "a BOOL is one byte, 0 or 1"));
    }
  }
  request::RowsTensor tensor;
  tensor.row_bytes = bytes.size() / static_cast<std::size_t>(head.shape.dim(0));
  tensor.data = tensor::Buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.data.mutable_view().data(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace tonnage::codec
