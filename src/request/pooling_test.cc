// SPDX-License-Identifier: Apache-2.0
#include "request/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "testkit/model_specs.h"

namespace tonnage::request {
namespace {

// Three texts of one, three and one chunks.
Request chunked(model::ChunkPooling pooling) {
  model::ModelSpec spec = testkit::encoder_spec();
  spec.chunk_pooling = pooling;
  Request request;
  request.model = std::make_shared<const model::ModelSpec>(spec);
  request.rows = 5;
  request.lengths = {4, 10, 10, 5, 3};
  request.text_begins = {0, 1, 4, 5};
  return request;
}

template <typename T>
OutputTensor output_of(tensor::DataType type, const std::vector<T>& values) {
  const std::int64_t dims[] = {5, static_cast<std::int64_t>(values.size() / 5)};
  OutputTensor output{"scores", type, *tensor::Shape::make(dims), tensor::Buffer(values.size() * sizeof(T))};
  std::ranges::copy(values, as_elements<T>(output.data.mutable_view()).begin());
  return output;
}

template <typename T>
std::vector<T> values_of(const OutputTensor& output) {
  const auto values = as_elements<T>(output.data.view());
  return {values.begin(), values.end()};
}

const std::vector<float> kScores = {0.1F, 0.2F, 1, 8, 2, 4, 4, -2, 0.3F, 0.4F};

TEST(PoolChunks, TheMeanIsWeightedByTheLengthOfEachChunk) {
  const auto pooled =
      pool_chunks(chunked(model::ChunkPooling::kMean), output_of(tensor::DataType::kFp32, kScores));
  ASSERT_TRUE(pooled.is_ok());
  EXPECT_EQ(pooled->shape.to_string(), "[3,2]");
  // (10·1 + 10·2 + 5·4) ÷ 25 and (10·8 + 10·4 − 5·2) ÷ 25
  EXPECT_EQ(values_of<float>(*pooled), (std::vector<float>{0.1F, 0.2F, 2, 4.4F, 0.3F, 0.4F}));
}

TEST(PoolChunks, TheMaxIsTakenElementByElement) {
  const auto pooled =
      pool_chunks(chunked(model::ChunkPooling::kMax), output_of(tensor::DataType::kFp32, kScores));
  ASSERT_TRUE(pooled.is_ok());
  EXPECT_EQ(values_of<float>(*pooled), (std::vector<float>{0.1F, 0.2F, 4, 8, 0.3F, 0.4F}));
}

TEST(PoolChunks, DoublesKeepTheirPrecision) {
  const std::vector<double> values = {1e-300, 1, 2, 3, 1.0 / 3};
  const auto pooled =
      pool_chunks(chunked(model::ChunkPooling::kMean), output_of(tensor::DataType::kFp64, values));
  ASSERT_TRUE(pooled.is_ok());
  EXPECT_EQ(values_of<double>(*pooled), (std::vector<double>{1e-300, (10.0 + 20 + 15) / 25, 1.0 / 3}));
}

}  // namespace
}  // namespace tonnage::request
