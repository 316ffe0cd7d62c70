// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "api/envelope.h"
#include "api/text_rows.h"
#include "testkit/model_specs.h"

namespace tonnage::api {
namespace {

TEST(Envelope, CoversTheWidestDecodedFormOfABody) {
  // "1," becomes eight bytes of INT64 and as much again while it is moved into its tensor.
  EXPECT_GE(decoding_bytes(1000, std::nullopt), Bytes(9000));
  EXPECT_LT(decoding_bytes(1000, 100), Bytes(8000)) << "binary tensors are copied once";
  EXPECT_EQ(Bytes::max(), decoding_bytes(~std::size_t{0}, std::nullopt)) << "an absurd length saturates";
}

TEST(Envelope, HoldsTensorsAndTheReplyOfTheLongestRow) {
  request::Request request;
  request.model = std::make_shared<const model::ModelSpec>(testkit::encoder_spec());
  request.rows = 10;
  request.lengths.assign(10, 5);
  request.lengths[3] = 500;
  request::RowsTensor ids;
  ids.data = tensor::Buffer(4000);
  request.inputs.emplace_back(std::move(ids));
  const Bytes outputs = request.model->output_row_bytes(500) * 10;
  EXPECT_GE(envelope_bytes(request), Bytes(4000) + outputs * 2);
}

TEST(TextRows, IdsOfAllRowsLieOneAfterAnotherWithTheirLengths) {
  request::Request request;
  std::vector<text::Tokens> tokens(2);
  tokens[0].ids = {101, 7, 102};
  tokens[1].ids = {101, 102};
  tokens[1].truncated = true;
  ASSERT_TRUE(fill_text_rows(testkit::encoder_spec(), tokens, request).is_ok());
  EXPECT_EQ(2U, request.rows);
  EXPECT_EQ((std::vector<std::uint32_t>{3, 2}), request.lengths);
  EXPECT_EQ(1U, request.truncated_rows);
  const auto second = as_elements<std::int64_t>(request.inputs[0]->row(1));
  EXPECT_EQ((std::vector<std::int64_t>{101, 102}), std::vector<std::int64_t>(second.begin(), second.end()));
  EXPECT_FALSE(request.inputs[1].has_value()) << "the mask is generated at gather";
}

TEST(TextRows, ChunksAreRowsOfTheTextTheyCameFrom) {
  request::Request request;
  std::vector<text::Tokens> tokens(4);
  for (text::Tokens& row : tokens) row.ids = {101, 7, 102};
  tokens[1].chunked = true;
  tokens[2].continues = true;
  ASSERT_TRUE(fill_text_rows(testkit::encoder_spec(), tokens, request).is_ok());
  EXPECT_EQ(4U, request.rows);
  EXPECT_EQ(3U, request.client_rows());
  EXPECT_EQ((std::vector<std::uint32_t>{0, 1, 3, 4}), request.text_begins);
  EXPECT_EQ(1U, request.chunked_rows);
}

TEST(Envelope, CoversTheIdsOfTheDensestText) {
  model::ModelSpec spec = testkit::encoder_spec();
  spec.too_long = model::TooLong::kChunk;
  // A token per byte: 4,000 ids of eight bytes, once as ids and once in each of the two inputs.
  EXPECT_GE(tokenising_bytes(spec, std::vector<std::string>{std::string(4000, '.')}), Bytes(4000 * 24));
  spec.too_long = model::TooLong::kTruncate;
  EXPECT_LT(tokenising_bytes(spec, std::vector<std::string>{std::string(4000, '.')}), Bytes(4000 * 24));
}

TEST(TextRows, AModelWithoutAnIdInputIsAnError) {
  request::Request request;
  const auto spec =
      testkit::model_spec("echo", {testkit::tensor_spec("x", tensor::DataType::kFp32, {-1, 4})}, {});
  EXPECT_EQ("no_id_input", fill_text_rows(spec, {}, request).reason());
}

}  // namespace
}  // namespace tonnage::api
