// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <gtest/gtest.h>

#include <set>

namespace tonnage::model {
namespace {

TensorSpec make_tensor(std::string name, tensor::DataType type, std::vector<std::int64_t> dims) {
  TensorSpec made;
  made.name = std::move(name);
  made.type = type;
  made.dims = std::move(dims);
  return made;
}

ModelSpec encoder() {
  ModelSpec spec;
  spec.max_length = 500;
  spec.inputs = {make_tensor("input_ids", tensor::DataType::kInt64, {-1, -1}),
                 make_tensor("pixels", tensor::DataType::kFp32, {-1, 3, 2})};
  spec.outputs = {make_tensor("scores", tensor::DataType::kFp32, {-1, 2}),
                  make_tensor("tokens", tensor::DataType::kFp16, {-1, -1, 8})};
  return spec;
}

TEST(ModelSpec, PadsToMultiplesClippedToTheModelsLength) {
  const ModelSpec spec = encoder();
  EXPECT_EQ(spec.padded(1), 32U);
  EXPECT_EQ(spec.padded(32), 32U);
  EXPECT_EQ(spec.padded(33), 64U);
  EXPECT_EQ(spec.padded(490), 500U);
  EXPECT_EQ(spec.padded(500), 500U);
}

TEST(ModelSpec, NeverPadsBelowTheLengthItWasAskedFor) {
  EXPECT_EQ(encoder().padded(700), 700U);
  EXPECT_EQ(encoder().padded(0xffffffffU), 0xffffffffU);
}

TEST(ModelSpec, DoesNotPadRowsThatMeetOnlyTheirEqual) {
  ModelSpec spec = encoder();
  spec.meet = MeetRule::kGroup;
  EXPECT_EQ(spec.padded(33), 33U);
}

TEST(ModelSpec, CountsTheBytesOfOneRow) {
  const ModelSpec spec = encoder();
  EXPECT_EQ(spec.input_row_bytes(0, 128), Bytes(1024));
  EXPECT_EQ(spec.input_row_bytes(1, 128), Bytes(24));
  EXPECT_EQ(spec.output_row_bytes(10), Bytes(8 + 160));
}

// Height grouped, width padded to multiples of 16, depth to multiples of 10.
ModelSpec volumes() {
  ModelSpec spec;
  spec.sizes = {{"height", 50, MeetRule::kGroup, 1},
                {"width", 100, MeetRule::kPad, 16},
                {"depth", 64, MeetRule::kPad, 10}};
  spec.positions_per_unit = 4;
  spec.max_length = spec.length_of(spec.largest_size());
  return spec;
}

RowSize size_of(std::uint32_t height, std::uint32_t width, std::uint32_t depth) {
  RowSize size;
  size.at = {height, width, depth};
  return size;
}

TEST(ModelSizes, EachIsPaddedByItsOwnRuleAndClippedToItsMaximum) {
  const ModelSpec spec = volumes();
  EXPECT_EQ(spec.padded_size(size_of(7, 17, 1)), size_of(7, 32, 10));
  EXPECT_EQ(spec.padded_size(size_of(50, 97, 61)), size_of(50, 100, 64));
  EXPECT_EQ(spec.length_of(size_of(50, 100, 64)), 80'000U);
  EXPECT_EQ(spec.length_of(size_of(1, 1, 1)), 1U) << "rounded up: nothing costs nothing";
}

TEST(ModelSizes, RowsOfOneGroupDifferInTheLastPaddedSizeOnly) {
  const ModelSpec spec = volumes();
  const std::uint32_t group = spec.group_of(size_of(7, 17, 1));
  EXPECT_EQ(group, spec.group_of(size_of(7, 32, 64)));
  EXPECT_NE(group, spec.group_of(size_of(8, 17, 1)));
  EXPECT_NE(group, spec.group_of(size_of(7, 33, 1)));
}

TEST(ModelSizes, NoTwoGroupsHaveTheSameNumber) {
  ModelSpec spec = volumes();
  spec.sizes[2].meet = MeetRule::kGroup;
  spec.sizes[2].multiple = 1;
  std::set<std::uint32_t> groups;
  for (std::uint32_t height = 1; height <= 50; ++height) {
    for (std::uint32_t depth = 1; depth <= 64; ++depth)
      groups.insert(spec.group_of(size_of(height, 5, depth)));
  }
  EXPECT_EQ(groups.size(), 50U * 64U);
}

TEST(ModelSizes, ASizeOfALengthIsAtMostThatLongAndReachesTheEnd) {
  const ModelSpec spec = volumes();
  EXPECT_EQ(spec.size_of_length(spec.max_length), spec.largest_size());
  for (std::uint32_t length = 500; length <= spec.max_length; length += 499) {
    const RowSize size = spec.size_of_length(length);
    EXPECT_EQ(spec.padded_size(size), size);
    EXPECT_LE(spec.length_of(size), length);
    EXPECT_GE(spec.length_of(size), length / 4);
    EXPECT_EQ(spec.size_of_length(spec.length_of(size)), size) << "what was made once is made again";
  }
}

TEST(ModelSizes, AModelWithoutThemHasItsLengthAsTheOnlySize) {
  const ModelSpec spec = encoder();
  EXPECT_EQ(spec.padded_size(33), RowSize(64));
  EXPECT_EQ(spec.length_of(64), 64U);
  EXPECT_EQ(spec.largest_size(), RowSize(500));
  EXPECT_EQ(spec.size_of_length(77), RowSize(77));
}

TEST(ModelSpec, SaturatesInsteadOfWrapping) {
  ModelSpec spec = encoder();
  spec.outputs[0].dims = {-1, std::int64_t{1} << 62, 1 << 10};
  EXPECT_EQ(spec.output_row_bytes(1), Bytes::max());
}

TEST(ModelSpec, FindsInputsByName) {
  EXPECT_EQ(encoder().find_input("pixels"), 1U);
  EXPECT_FALSE(encoder().find_input("scores").has_value());
}

}  // namespace
}  // namespace tonnage::model
