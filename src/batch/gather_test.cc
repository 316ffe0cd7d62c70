// SPDX-License-Identifier: Apache-2.0
#include "batch/gather.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "batch/detail/pad.h"
#include "tensor/buffer.h"
#include "tensor/strings.h"
#include "testkit/model_specs.h"

namespace tonnage::batch {
namespace {

using tensor::DataType;
using testkit::tensor_spec;

template <typename T>
request::RowsTensor rows_of(const std::vector<T>& values, std::size_t rows) {
  request::RowsTensor tensor;
  tensor.data = tensor::Buffer(values.size() * sizeof(T));
  std::memcpy(tensor.data.mutable_view().data(), values.data(), tensor.data.size());
  tensor.row_bytes = values.size() * sizeof(T) / rows;
  return tensor;
}

request::Request ids_request(const std::vector<std::int64_t>& ids) {
  request::Request request;
  request.rows = 1;
  request.length = static_cast<std::uint32_t>(ids.size());
  request.inputs.resize(2);
  request.inputs[0] = rows_of(ids, 1);
  return request;
}

template <typename T>
std::vector<T> read(const wire::TensorLayout& layout, ByteView slot) {
  const auto elements = as_elements<T>(slot.subspan(layout.offset, layout.bytes));
  return {elements.begin(), elements.end()};
}

TEST(Gather, PadsIdsAndMarksOwnPositionsInTheMask) {
  auto spec = testkit::encoder_spec();
  spec.inputs[0].pad_value = 7;
  const auto a = ids_request({1, 2, 3});
  const auto b = ids_request({4});
  const std::vector<RowRef> rows = {{&a, 0}, {&b, 0}};
  tensor::Buffer slot(layout_bytes(spec, 2, 4).size());
  const auto layouts = gather(spec, rows, 4, slot.mutable_view());
  ASSERT_TRUE(layouts.is_ok());
  EXPECT_EQ((std::vector<std::int64_t>{1, 2, 3, 7, 4, 7, 7, 7}),
            read<std::int64_t>(layouts.value()[0], slot.view()));
  EXPECT_EQ((std::vector<std::int64_t>{1, 1, 1, 0, 1, 0, 0, 0}),
            read<std::int64_t>(layouts.value()[1], slot.view()));
  EXPECT_EQ("[2,4]", layouts.value()[1].shape.to_string());
}

TEST(Gather, AMaskThatTheClientSentIsUsedAsItIs) {
  const auto spec = testkit::encoder_spec();
  auto request = ids_request({1, 2, 3});
  request.inputs[1] = rows_of(std::vector<std::int64_t>{1, 0, 1}, 1);
  const std::vector<RowRef> rows = {{&request, 0}};
  tensor::Buffer slot(layout_bytes(spec, 1, 4).size());
  const auto layouts = gather(spec, rows, 4, slot.mutable_view());
  ASSERT_TRUE(layouts.is_ok());
  EXPECT_EQ((std::vector<std::int64_t>{1, 0, 1, 0}), read<std::int64_t>(layouts.value()[1], slot.view()));
}

TEST(Gather, TensorsAreAlignedAndFillTheLayoutExactly) {
  const auto spec = testkit::encoder_spec();
  const auto a = ids_request({1, 2, 3});
  const std::vector<RowRef> rows = {{&a, 0}, {&a, 0}, {&a, 0}};
  tensor::Buffer slot(layout_bytes(spec, 3, 3).size());
  EXPECT_EQ(256U, slot.size());  // 72 bytes each, rounded up to 128
  const auto layouts = gather(spec, rows, 3, slot.mutable_view());
  ASSERT_TRUE(layouts.is_ok());
  EXPECT_EQ(0U, layouts.value()[0].offset);
  EXPECT_EQ(128U, layouts.value()[1].offset);
}

TEST(Gather, PadsAMiddleDim) {
  auto spec = testkit::model_spec("frames", {tensor_spec("x", DataType::kInt32, {-1, 2, -1})}, {});
  spec.inputs[0].pad_value = -1;
  request::Request request;
  request.rows = 1;
  request.length = 2;
  request.inputs.resize(1);
  request.inputs[0] = rows_of(std::vector<std::int32_t>{1, 2, 3, 4}, 1);
  const std::vector<RowRef> rows = {{&request, 0}};
  tensor::Buffer slot(layout_bytes(spec, 1, 3).size());
  const auto layouts = gather(spec, rows, 3, slot.mutable_view());
  ASSERT_TRUE(layouts.is_ok());
  EXPECT_EQ((std::vector<std::int32_t>{1, 2, -1, 3, 4, -1}),
            read<std::int32_t>(layouts.value()[0], slot.view()));
}

TEST(Gather, ASlotOneByteTooSmallIsRefusedAndNotOverrun) {
  const auto spec = testkit::encoder_spec();
  const auto a = ids_request({1, 2, 3});
  const std::vector<RowRef> rows = {{&a, 0}};
  tensor::Buffer slot(64 + 23);
  EXPECT_EQ("slot_too_small", gather(spec, rows, 3, slot.mutable_view()).status().reason());
}

TEST(Gather, RowsThatDoNotFitTheBatchAreAnInternalError) {
  const auto spec = testkit::encoder_spec();
  auto longer = ids_request({1, 2, 3, 4, 5});
  auto lying = ids_request({1, 2, 3});
  lying.length = 2;
  auto without = ids_request({1, 2, 3});
  without.inputs[0].reset();
  auto one_row = ids_request({1});
  tensor::Buffer slot(layout_bytes(spec, 1, 4).size());
  const std::vector<RowRef> cases = {{&longer, 0}, {&lying, 0}, {&without, 0}, {&one_row, 1}};
  for (const RowRef& row : cases) {
    EXPECT_EQ("bad_row", gather(spec, std::span(&row, 1), 4, slot.mutable_view()).status().reason());
  }
}

TEST(Gather, StringsLieBehindEachOther) {
  auto spec = testkit::model_spec("echo", {tensor_spec("text", DataType::kBytes, {-1, 1})}, {});
  std::vector<std::byte> bytes;
  tensor::append_string(bytes, "ab");
  tensor::append_string(bytes, "cde");
  request::Request request;
  request.rows = 2;
  request.inputs.resize(1);
  request.inputs[0].emplace();
  request.inputs[0]->data = tensor::Buffer(bytes.size());
  std::memcpy(request.inputs[0]->data.mutable_view().data(), bytes.data(), bytes.size());
  request.inputs[0]->offsets = {0, 6, 13};
  const std::vector<RowRef> rows = {{&request, 1}, {&request, 0}};
  tensor::Buffer slot(64);
  const auto layouts = gather(spec, rows, 0, slot.mutable_view());
  ASSERT_TRUE(layouts.is_ok());
  ByteView written = slot.view().subspan(layouts.value()[0].offset, layouts.value()[0].bytes);
  EXPECT_EQ("cde", tensor::take_string(written));
  EXPECT_EQ("ab", tensor::take_string(written));
  EXPECT_TRUE(written.empty());
  tensor::Buffer small(12);
  EXPECT_EQ("slot_too_small", gather(spec, rows, 0, small.mutable_view()).status().reason());
}

TEST(Gather, SizesOfAbsurdSpecsSaturate) {
  const auto spec = testkit::model_spec("huge", {tensor_spec("x", DataType::kFp64, {-1, 1LL << 62, 8})},
                                        {tensor_spec("y", DataType::kFp64, {-1, 1LL << 62, 8})});
  EXPECT_EQ(Bytes::max(), layout_bytes(spec, 64, 0));
  EXPECT_EQ(Bytes::max(), output_bytes(spec, 64, 0));
}

std::uint64_t bits_of(DataType type, std::int64_t value) {
  const detail::Element element = detail::make_element(type, value);
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.bytes.data(), element.size);
  return bits;
}

TEST(Pad, ValuesHaveTheBitsOfTheirType) {
  EXPECT_EQ(0x3c00U, bits_of(DataType::kFp16, 1));
  EXPECT_EQ(0xbc00U, bits_of(DataType::kFp16, -1));
  EXPECT_EQ(0x7bffU, bits_of(DataType::kFp16, 65504));
  EXPECT_EQ(0x7c00U, bits_of(DataType::kFp16, 65520));
  EXPECT_EQ(0x6800U, bits_of(DataType::kFp16, 2049));  // halfway, to even: 2048
  EXPECT_EQ(0U, bits_of(DataType::kFp16, 0));
  EXPECT_EQ(0x3f80U, bits_of(DataType::kBf16, 1));
  EXPECT_EQ(0xc2c8U, bits_of(DataType::kBf16, -100));
  EXPECT_EQ(0x3f800000U, bits_of(DataType::kFp32, 1));
  EXPECT_EQ(0xffU, bits_of(DataType::kInt8, -1));
  EXPECT_EQ(1U, bits_of(DataType::kBool, 5));
}

TEST(Pad, FillRepeatsTheElement) {
  std::vector<std::int32_t> values(1000, -9);
  detail::fill(std::as_writable_bytes(std::span(values)), detail::make_element(DataType::kInt32, 258));
  EXPECT_EQ(std::vector<std::int32_t>(1000, 258), values);
}

}  // namespace
}  // namespace tonnage::batch
