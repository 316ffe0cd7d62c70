// SPDX-License-Identifier: Apache-2.0
#include "wire/messages.h"

#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/bug.h"
#include "wire/detail/layout.h"

namespace tonnage::wire {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian, and so is memory here");

class Writer {
 public:
  explicit Writer(std::span<std::byte, kMaxMessageBytes> out) : out_(out) {}

  template <typename T>
  void number(T value) {
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  void zeros(std::size_t count) { std::memset(take(count), 0, count); }
  void size63(std::uint64_t value) { number(value); }
  void amount(Bytes value) { number(value.count()); }
  void duration(Duration value) { number(std::int64_t{value.count()}); }
  void kind(ErrorKind value) { number(static_cast<std::uint8_t>(value)); }
  void datatype(tensor::DataType value) { number(static_cast<std::uint8_t>(value)); }
  void text(std::string_view value) {
    value = value.substr(0, kMaxText);
    number(static_cast<std::uint32_t>(value.size()));
    bytes(as_bytes(value));
  }
  template <typename Between>
  void shape(const tensor::Shape& value, Between between) {
    number(static_cast<std::uint8_t>(value.rank()));
    between();
    bytes(std::as_bytes(value.dims()));
    zeros((tensor::kMaxRank - value.rank()) * sizeof(std::int64_t));
  }
  void tensors(const std::vector<TensorLayout>& values) {
    TONNAGE_CHECK(values.size() <= kMaxTensors, "more tensors than a message holds");
    number(static_cast<std::uint32_t>(values.size()));
    zeros(4);
    for (const TensorLayout& value : values) detail::layout(*this, value);
  }

  void rewind() { at_ = 0; }
  std::size_t written() const { return at_; }

 private:
  std::byte* take(std::size_t count) {
    TONNAGE_CHECK(count <= out_.size() - at_, "a message outgrew its bound");
    std::byte* const place = out_.data() + at_;
    at_ += count;
    return place;
  }
  void bytes(ByteView from) {
    if (!from.empty()) std::memcpy(take(from.size()), from.data(), from.size());
  }

  std::span<std::byte, kMaxMessageBytes> out_;
  std::size_t at_ = 0;
};

constexpr std::array<std::string_view, std::variant_size_v<Body>> kNames = {
    "hello",   "load",  "loaded", "failed",  "run",  "done",  "need", "region",
    "discard", "error", "trim",   "trimmed", "stat", "stats", "stop"};

}  // namespace

std::size_t encode_into(const Message& message, std::span<std::byte, kMaxMessageBytes> out) {
  detail::Header header{.type = static_cast<std::uint16_t>(message.body.index() + 1),
                        .ticket = message.ticket};
  Writer writer(out);
  detail::layout(writer, std::as_const(header));
  std::visit([&](const auto& body) { detail::layout(writer, body); }, message.body);
  const std::size_t size = writer.written();
  header.size = static_cast<std::uint32_t>(size);
  writer.rewind();
  detail::layout(writer, std::as_const(header));
  return size;
}

std::vector<std::byte> encode(const Message& message) {
  std::vector<std::byte> out(kMaxMessageBytes);
  out.resize(encode_into(message, std::span<std::byte, kMaxMessageBytes>(out.data(), kMaxMessageBytes)));
  return out;
}

std::string_view message_name(const Body& body) { return kNames.at(body.index()); }

}  // namespace tonnage::wire
