// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/detail/layout.h"
#include "wire/messages.h"

namespace tonnage::wire {
namespace {

// Takes fields from untrusted bytes. The first problem sticks; after it every field reads as zero, so
// that layout() needs no early return and nothing is read beyond the end.
class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}

  template <typename T>
  void number(T& value) {
    value = T{};
    const ByteView from = take(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
  }
  void zeros(std::size_t count) {
    const auto is_set = [](std::byte b) { return b != std::byte{0}; };
    if (std::ranges::any_of(take(count), is_set)) fail("a reserved byte is not zero");
  }
  void size63(std::uint64_t& value) {
    number(value);
    if (value > detail::kMax63) fail("a size or an offset does not fit 63 bits");
  }
  void amount(Bytes& value) {
    std::uint64_t count = 0;
    number(count);
    value = Bytes(count);
  }
  void duration(Duration& value) {
    std::int64_t nanoseconds = 0;
    number(nanoseconds);
    if (nanoseconds < 0) fail("a duration is negative");
    value = Duration(nanoseconds);
  }
  void kind(ErrorKind& value) {
    std::uint8_t number_of_kind = 0;
    number(number_of_kind);
    if (number_of_kind < 1 || number_of_kind > static_cast<std::uint8_t>(ErrorKind::kBadRequest)) {
      return fail("the kind of error is not known");
    }
    value = static_cast<ErrorKind>(number_of_kind);
  }
  void datatype(tensor::DataType& value) {
    std::uint8_t number_of_type = 0;
    number(number_of_type);
    const auto type = tensor::datatype_from_wire(number_of_type);
    if (!type.is_ok()) return fail("the datatype is not known");
    value = *type;
  }
  void text(std::string& value) {
    std::uint32_t size = 0;
    number(size);
    if (size > kMaxText) return fail("a text is too long");
    value = as_text(take(size));
  }
  template <typename Between>
  void shape(tensor::Shape& value, Between between) {
    std::uint8_t rank = 0;
    number(rank);
    between();
    std::array<std::int64_t, tensor::kMaxRank> dims{};
    for (std::int64_t& dim : dims) number(dim);
    if (rank > tensor::kMaxRank) return fail("a tensor has more than eight dims");
    const auto unused = std::span(dims).subspan(rank);
    if (std::ranges::any_of(unused, [](std::int64_t dim) { return dim != 0; })) {
      return fail("a dim beyond the rank is not zero");
    }
    auto made = tensor::Shape::make(std::span(dims).first(rank));
    if (!made.is_ok()) return fail("a dim is negative or the dims are too large");
    value = *made;
  }
  void tensors(std::vector<TensorLayout>& values) {
    std::uint32_t count = 0;
    number(count);
    zeros(4);
    if (count > kMaxTensors) return fail("there are more than 16 tensors");
    if (!is_ok()) return;
    values.resize(count);
    for (TensorLayout& value : values) detail::layout(*this, value);
  }

  bool is_ok() const { return problem_.empty(); }
  std::string_view problem() const { return problem_; }
  void expect_end() {
    if (!rest_.empty()) fail("it is longer than its fields");
  }

 private:
  void fail(std::string_view problem) {
    if (problem_.empty()) problem_ = problem;
  }
  // Empty when there is not enough left, which is then the problem.
  ByteView take(std::size_t count) {
    if (rest_.size() < count) {
      fail("it ends in the middle of a field");
      rest_ = {};
      return {};
    }
    const ByteView taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  ByteView rest_;
  std::string_view problem_;
};

template <std::size_t I>
void read_body(Reader& reader, Body& body) {
  detail::layout(reader, body.emplace<I>());
}

constexpr std::size_t kTypes = std::variant_size_v<Body>;
using ReadBody = void (*)(Reader&, Body&);

template <std::size_t... I>
constexpr std::array<ReadBody, kTypes> make_readers(std::index_sequence<I...>) {
  return {&read_body<I>...};
}
constexpr auto kReaders = make_readers(std::make_index_sequence<kTypes>());

Status bad(std::string_view what, std::string_view problem) {
  return invalid("bad_message", fmt::format("{}: {}", what, problem));
}

Status check_header(const detail::Header& header, std::size_t size) {
  if (header.magic != detail::kMagic) return bad("header", "it does not begin with TNNG");
  if (header.version != kVersion) {
    return invalid("wrong_version",
                   fmt::format("the peer speaks version {}, this side version {}", header.version, kVersion));
  }
  if (header.type < 1 || header.type > kTypes) return bad("header", "the type of message is not known");
  if (header.size != size) return bad("header", "the stated size is not the size of the packet");
  return Status::ok();
}

}  // namespace

Result<Message> decode(ByteView bytes) {
  if (bytes.size() > kMaxMessageBytes) return bad("header", "it is larger than 8192 bytes");
  detail::Header header;
  Reader reader(bytes);
  detail::layout(reader, header);
  if (bytes.size() < detail::kHeaderBytes) return bad("header", "it ends in the middle of the header");
  TONNAGE_TRY(check_header(header, bytes.size()));
  Message message;
  message.ticket = header.ticket;
  kReaders.at(header.type - 1U)(reader, message.body);
  reader.expect_end();
  if (!reader.is_ok()) return bad(message_name(message.body), reader.problem());
  return message;
}

}  // namespace tonnage::wire
