// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "codec/sagemaker/sagemaker.h"
#include "testkit/model_specs.h"
#include "testkit/requests.h"

namespace tonnage::codec::sagemaker {
namespace {

using tensor::DataType;
using testkit::output_tensor;
using testkit::tensor_spec;

model::ModelSpec spec() {
  return testkit::model_spec("m", {tensor_spec("x", DataType::kFp32, {-1, 2})},
                             {tensor_spec("y", DataType::kFp32, {-1, 2})});
}

std::string encode(const model::ModelSpec& model, request::OutputTensor output, BodyForm form) {
  request::Answer answer;
  answer.outputs.push_back(std::move(output));
  ReplyFormat format;
  format.form = form;
  const auto encoded = encode_invocation(model, {}, answer, format);
  return encoded.is_ok() ? encoded.value().content_type + "|" + encoded.value().body
                         : encoded.status().to_string();
}

request::OutputTensor scores() {
  return output_tensor<float>("y", DataType::kFp32, {2, 2}, {0.25F, 0.75F, 2, -1});
}

TEST(SageMakerEncode, RowsWithoutLabelsAreTheirValues) {
  EXPECT_EQ(R"(application/json|{"predictions":[[0.25,0.75],[2,-1]]})",
            encode(spec(), scores(), BodyForm::kJson));
  EXPECT_EQ("application/jsonlines|[0.25,0.75]\n[2,-1]\n", encode(spec(), scores(), BodyForm::kJsonLines));
  EXPECT_EQ("text/csv|0.25,0.75\n2,-1\n", encode(spec(), scores(), BodyForm::kCsv));
}

TEST(SageMakerEncode, LabelsComeWithTheScoreAsItIs) {
  auto labelled = spec();
  labelled.labels = {"bad", "good"};
  EXPECT_EQ(R"(application/json|{"predictions":[{"label":"good","score":0.75},{"label":"bad","score":2}]})",
            encode(labelled, scores(), BodyForm::kJson));
  EXPECT_EQ("application/jsonlines|{\"label\":\"good\",\"score\":0.75}\n{\"label\":\"bad\",\"score\":2}\n",
            encode(labelled, scores(), BodyForm::kJsonLines));
  labelled.labels = {"bad", "good, very"};
  EXPECT_EQ("text/csv|\"good, very\",0.75\nbad,2\n", encode(labelled, scores(), BodyForm::kCsv));
}

TEST(SageMakerEncode, LogitsGoThroughSoftmaxWhereTheModelSaysSo) {
  auto labelled = spec();
  labelled.labels = {"bad", "good"};
  labelled.metadata["scores"] = "logits";
  // 1 / (1 + e⁻¹) for both rows: the difference of the logits is 1; large logits do not overflow.
  auto output = output_tensor<float>("y", DataType::kFp32, {2, 2}, {0, 1, 1001, 1000});
  EXPECT_EQ(
      R"(application/json|{"predictions":[{"label":"good","score":0.7310586},{"label":"bad","score":0.7310586}]})",
      encode(labelled, std::move(output), BodyForm::kJson));
}

TEST(SageMakerEncode, NestingFollowsTheShape) {
  auto output = output_tensor<std::int32_t>("y", DataType::kInt32, {1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(R"(application/json|{"predictions":[[[1,2],[3,4]]]})",
            encode(spec(), std::move(output), BodyForm::kJson));
  auto scalars = output_tensor<std::int32_t>("y", DataType::kInt32, {2}, {1, 2});
  EXPECT_EQ(R"(application/json|{"predictions":[1,2]})", encode(spec(), std::move(scalars), BodyForm::kJson));
}

TEST(SageMakerEncode, StringsAreQuotedByTheRulesOfTheirForm) {
  EXPECT_EQ(R"(application/json|{"predictions":[["a\"b"],["c,d"]]})",
            encode(spec(), testkit::string_output("y", {2, 1}, {"a\"b", "c,d"}), BodyForm::kJson));
  EXPECT_EQ("text/csv|\"a\"\"b\"\n\"c,d\"\n",
            encode(spec(), testkit::string_output("y", {2, 1}, {"a\"b", "c,d"}), BodyForm::kCsv));
}

TEST(SageMakerEncode, AV2RequestIsAnsweredInItsOwnDialect) {
  EXPECT_EQ(
      R"(application/json|{"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"data":[0.25,0.75,2,-1]}]})",
      encode(spec(), scores(), BodyForm::kV2));
}

TEST(SageMakerEncode, AnAnswerWithoutOutputsIsAnInternalError) {
  ReplyFormat format;
  format.form = BodyForm::kJson;
  EXPECT_EQ("missing_output", encode_invocation(spec(), {}, {}, format).status().reason());
}

}  // namespace
}  // namespace tonnage::codec::sagemaker
