// SPDX-License-Identifier: Apache-2.0
#include "batch/split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/buffer.h"
#include "tensor/strings.h"
#include "testkit/model_specs.h"

namespace tonnage::batch {
namespace {

using tensor::DataType;
using testkit::tensor_spec;

tensor::Shape shape(std::vector<std::int64_t> dims) { return tensor::Shape::make(dims).value(); }

wire::TensorLayout layout(DataType type, std::vector<std::int64_t> dims, std::uint64_t offset,
                          std::uint64_t bytes) {
  return {type, shape(std::move(dims)), offset, bytes};
}

model::ModelSpec hidden_spec() {
  return testkit::model_spec("hidden", {tensor_spec("ids", DataType::kInt64, {-1, -1})},
                             {tensor_spec("y", DataType::kFp32, {-1, -1, 2})});
}

TEST(CheckOutputs, AcceptsWhatFitsSpecBatchAndRegion) {
  const std::vector<wire::TensorLayout> good = {layout(DataType::kFp32, {3, 4, 2}, 64, 96)};
  EXPECT_TRUE(check_outputs(hidden_spec(), good, 3, Bytes(160)).is_ok());
}

TEST(CheckOutputs, RefusesEveryHostileLayout) {
  const struct {
    const char* what;
    wire::TensorLayout layout;
  } cases[] = {
      {"one byte behind the region", layout(DataType::kFp32, {3, 4, 2}, 128, 96)},
      {"offset behind the region", layout(DataType::kFp32, {3, 4, 2}, 1024, 96)},
      {"offset + bytes wraps", layout(DataType::kFp32, {3, 4, 2}, ~0ULL - 63, 96)},
      {"not aligned", layout(DataType::kFp32, {3, 4, 2}, 4, 96)},
      {"wrong type of the same size", layout(DataType::kInt32, {3, 4, 2}, 0, 96)},
      {"rank too small", layout(DataType::kFp32, {3, 8}, 0, 96)},
      {"rank too large", layout(DataType::kFp32, {3, 4, 2, 1}, 0, 96)},
      {"rank 0", layout(DataType::kFp32, {}, 0, 4)},
      {"a row too few", layout(DataType::kFp32, {2, 4, 2}, 0, 64)},
      {"a row too many", layout(DataType::kFp32, {4, 4, 2}, 0, 128)},
      {"a fixed dim changed", layout(DataType::kFp32, {3, 4, 1}, 0, 48)},
      {"a free dim above max_length", layout(DataType::kFp32, {3, 513, 2}, 0, 12312)},
      {"bytes smaller than the shape", layout(DataType::kFp32, {3, 4, 2}, 0, 95)},
      {"bytes larger than the shape", layout(DataType::kFp32, {3, 4, 2}, 0, 97)},
  };
  for (const auto& c : cases) {
    const Status status = check_outputs(hidden_spec(), std::span(&c.layout, 1), 3, Bytes(192));
    EXPECT_EQ("bad_output", status.reason()) << c.what;
    EXPECT_EQ(Code::kInternal, status.code()) << c.what;
  }
}

TEST(CheckOutputs, RefusesAnotherNumberOfOutputs) {
  EXPECT_EQ("bad_output", check_outputs(hidden_spec(), {}, 3, Bytes(192)).reason());
  const std::vector<wire::TensorLayout> two(2, layout(DataType::kFp32, {3, 4, 2}, 0, 96));
  EXPECT_EQ("bad_output", check_outputs(hidden_spec(), two, 3, Bytes(192)).reason());
}

TEST(CheckOutputs, RefusesStringsThatCannotHoldTheirLengths) {
  const auto spec = testkit::model_spec("s", {}, {tensor_spec("y", DataType::kBytes, {-1})});
  const std::vector<wire::TensorLayout> small = {layout(DataType::kBytes, {3}, 0, 11)};
  EXPECT_EQ("bad_output", check_outputs(spec, small, 3, Bytes(64)).reason());
  const std::vector<wire::TensorLayout> enough = {layout(DataType::kBytes, {3}, 0, 12)};
  EXPECT_TRUE(check_outputs(spec, enough, 3, Bytes(64)).is_ok());
}

struct Region {
  tensor::Buffer bytes{256};
  void set(std::size_t at, const std::vector<float>& values) {
    std::memcpy(bytes.mutable_view().data() + at, values.data(), values.size() * sizeof(float));
  }
};

std::vector<float> values_of(const request::RowOutput& output) {
  std::vector<float> values(output.bytes.size() / sizeof(float));
  std::memcpy(values.data(), output.bytes.data(), output.bytes.size());
  return values;
}

TEST(SplitRow, CutsAFreeDimToTheRowsOwnLength) {
  const auto spec = hidden_spec();
  Region region;
  region.set(0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kFp32, {2, 3, 2}, 0, 48)};
  const std::vector<model::RowSize> sizes = {1, 3};
  const SplitBatch batch{spec, outputs, sizes, 3, region.bytes.view()};
  std::vector<std::byte> scratch;
  const auto first = split_row(batch, 0, scratch);
  EXPECT_EQ("[1,2]", first.value()[0].shape.to_string());
  EXPECT_EQ((std::vector<float>{1, 2}), values_of(first.value()[0]));
  const auto second = split_row(batch, 1, scratch);
  EXPECT_EQ((std::vector<float>{7, 8, 9, 10, 11, 12}), values_of(second.value()[0]));
}

TEST(SplitRow, CutsSeveralFreeDimsThroughScratch) {
  const auto spec = testkit::model_spec(
      "attention", {tensor_spec("ids", DataType::kInt64, {-1, -1})},
      {tensor_spec("a", DataType::kFp32, {-1, -1, -1}), tensor_spec("b", DataType::kFp32, {-1, 2, -1})});
  Region region;
  region.set(0, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  region.set(64, {1, 2, 3, 4, 5, 6});
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kFp32, {1, 3, 3}, 0, 36),
                                                   layout(DataType::kFp32, {1, 2, 3}, 64, 24)};
  const std::vector<model::RowSize> sizes = {2};
  std::vector<std::byte> scratch;
  const auto row = split_row({spec, outputs, sizes, 3, region.bytes.view()}, 0, scratch);
  ASSERT_TRUE(row.is_ok());
  EXPECT_EQ((std::vector<float>{1, 2, 4, 5}), values_of(row.value()[0]));
  EXPECT_EQ((std::vector<float>{1, 2, 4, 5}), values_of(row.value()[1]));
}

TEST(SplitRow, LeavesFixedDimsAndOtherFreeDimsAlone) {
  const auto spec = testkit::model_spec(
      "m", {tensor_spec("ids", DataType::kInt64, {-1, -1})},
      {tensor_spec("fixed", DataType::kFp32, {-1, 3}), tensor_spec("other", DataType::kFp32, {-1, -1})});
  Region region;
  region.set(0, {1, 2, 3});
  region.set(64, {4, 5});
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kFp32, {1, 3}, 0, 12),
                                                   layout(DataType::kFp32, {1, 2}, 64, 8)};
  const std::vector<model::RowSize> sizes = {1};
  std::vector<std::byte> scratch;
  const auto row = split_row({spec, outputs, sizes, 3, region.bytes.view()}, 0, scratch);
  EXPECT_EQ((std::vector<float>{1, 2, 3}), values_of(row.value()[0]));
  EXPECT_EQ((std::vector<float>{4, 5}), values_of(row.value()[1]));
}

TEST(SplitRow, ANonFiniteRowFailsAlone) {
  const auto spec = testkit::model_spec("m", {}, {tensor_spec("y", DataType::kFp32, {-1, 2})});
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Region region;
  region.set(0, {1, 2, NAN, 3, -kInf, 4, std::numeric_limits<float>::max(), -0.0F});
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kFp32, {4, 2}, 0, 32)};
  const std::vector<model::RowSize> sizes(4, 0);
  const SplitBatch batch{spec, outputs, sizes, 0, region.bytes.view()};
  std::vector<std::byte> scratch;
  EXPECT_TRUE(split_row(batch, 0, scratch).is_ok());
  EXPECT_EQ("non_finite", split_row(batch, 1, scratch).status().reason());
  EXPECT_EQ("non_finite", split_row(batch, 2, scratch).status().reason());
  EXPECT_TRUE(split_row(batch, 3, scratch).is_ok());
}

TEST(SplitRow, NaNInThePaddingOfARowIsNotTheRowsFault) {
  const auto spec = hidden_spec();
  Region region;
  region.set(0, {1, 2, NAN, NAN, 3, 4, 5, 6});
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kFp32, {2, 2, 2}, 0, 32)};
  const std::vector<model::RowSize> sizes = {1, 2};
  std::vector<std::byte> scratch;
  EXPECT_TRUE(split_row({spec, outputs, sizes, 2, region.bytes.view()}, 0, scratch).is_ok());
}

TEST(SplitRow, FindsNonFiniteValuesOfEveryFloatType) {
  const struct {
    DataType type;
    std::uint64_t nan;
    std::uint64_t largest;
  } cases[] = {{DataType::kFp16, 0x7c01, 0x7bff},
               {DataType::kBf16, 0xff80, 0x7f7f},
               {DataType::kFp32, 0x7fc00000, 0x7f7fffff},
               {DataType::kFp64, 0xfff0000000000000, 0x7fefffffffffffff}};
  for (const auto& c : cases) {
    const auto spec = testkit::model_spec("m", {}, {tensor_spec("y", c.type, {-1})});
    const std::size_t size = tensor::element_size(c.type);
    tensor::Buffer region(2 * size);
    std::memcpy(region.mutable_view().data(), &c.nan, size);
    std::memcpy(region.mutable_view().data() + size, &c.largest, size);
    const std::vector<wire::TensorLayout> outputs = {layout(c.type, {2}, 0, 2 * size)};
    const std::vector<model::RowSize> sizes(2, 0);
    const SplitBatch batch{spec, outputs, sizes, 0, region.view()};
    std::vector<std::byte> scratch;
    EXPECT_FALSE(split_row(batch, 0, scratch).is_ok()) << tensor::datatype_name(c.type);
    EXPECT_TRUE(split_row(batch, 1, scratch).is_ok()) << tensor::datatype_name(c.type);
  }
}

TEST(SplitRow, StringsAreFoundByTheirLengthsAndALyingOneFails) {
  const auto spec = testkit::model_spec("m", {}, {tensor_spec("y", DataType::kBytes, {-1, 1})});
  std::vector<std::byte> bytes;
  tensor::append_string(bytes, "first");
  tensor::append_string(bytes, "second");
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kBytes, {2, 1}, 0, bytes.size())};
  const std::vector<model::RowSize> sizes(2, 0);
  std::vector<std::byte> scratch;
  const auto row = split_row({spec, outputs, sizes, 0, bytes}, 1, scratch);
  ASSERT_TRUE(row.is_ok());
  EXPECT_EQ("second", as_text(row.value()[0].bytes.subspan(4)));
  bytes[9] = std::byte{7};  // one more than is there
  EXPECT_EQ("bad_output", split_row({spec, outputs, sizes, 0, bytes}, 1, scratch).status().reason());
  EXPECT_TRUE(split_row({spec, outputs, sizes, 0, bytes}, 0, scratch).is_ok());
}

TEST(SplitRow, StringsOfPaddingPositionsAreCut) {
  const auto spec = testkit::model_spec("m", {tensor_spec("ids", DataType::kInt64, {-1, -1})},
                                        {tensor_spec("y", DataType::kBytes, {-1, -1})});
  std::vector<std::byte> bytes;
  for (const char* text : {"a", "bb", "pad"}) tensor::append_string(bytes, text);
  const std::vector<wire::TensorLayout> outputs = {layout(DataType::kBytes, {1, 3}, 0, bytes.size())};
  const std::vector<model::RowSize> sizes = {2};
  std::vector<std::byte> scratch;
  const auto row = split_row({spec, outputs, sizes, 3, bytes}, 0, scratch);
  ASSERT_TRUE(row.is_ok());
  EXPECT_EQ("[2]", row.value()[0].shape.to_string());
  EXPECT_EQ(11U, row.value()[0].bytes.size());
}

}  // namespace
}  // namespace tonnage::batch
