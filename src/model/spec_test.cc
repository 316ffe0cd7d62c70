// SPDX-License-Identifier: Apache-2.0
#include "model/spec.h"

#include <gtest/gtest.h>

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
