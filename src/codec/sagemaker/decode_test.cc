// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/sagemaker/sagemaker.h"
#include "testkit/model_specs.h"
#include "testkit/requests.h"

namespace tonnage::codec::sagemaker {
namespace {

using tensor::DataType;
using testkit::tensor_spec;
using testkit::values_of;
using Texts = std::vector<std::string>;

constexpr const char* kJson = "application/json";
constexpr const char* kLines = "application/jsonlines";
constexpr const char* kCsv = "text/csv";

model::ModelSpec pair_spec(DataType type = DataType::kFp32) {
  return testkit::model_spec("pair", {tensor_spec("x", type, {-1, 2})},
                             {tensor_spec("y", DataType::kFp32, {-1, 2})});
}

model::ModelSpec text_spec() {
  auto spec = testkit::encoder_spec();
  spec.tokenizer = model::TokenizerSpec{"wordpiece", "vocab.txt", true};
  return spec;
}

Result<Decoded> decode(const model::ModelSpec& spec, std::string body, const char* type,
                       const char* accept = "") {
  body.reserve(body.size() + 64);
  return decode_invocation(spec, body, type, accept);
}

model::ModelSpec image_spec(model::RowsRule rows = model::RowsRule::kSpread) {
  auto image = tensor_spec("image", DataType::kFp32, {-1, -1, -1});
  image.sizes = {0, 0, 1};
  auto spec = testkit::model_spec("images", {image}, {});
  spec.sizes = {{"height", 8, model::MeetRule::kGroup, 1}, {"width", 8, model::MeetRule::kGroup, 1}};
  spec.max_length = 64;
  spec.rows = rows;
  return spec;
}

TEST(SageMakerDecode, RecordsOfAModelWithSizesMayDiffer) {
  const auto decoded = decode(image_spec(), "[[1,2,3],[4,5,6]]\n[[1,2],[3,4],[5,6]]\n", kLines);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  const request::Request& request = decoded->request;
  EXPECT_EQ(2U, request.row_size(0).at[0]);
  EXPECT_EQ(3U, request.row_size(1).at[0]);
  EXPECT_EQ(request.row_length(0), request.row_length(1));
  EXPECT_EQ((std::vector<float>{1, 2, 3, 4, 5, 6}), values_of<float>(request.inputs[0]->row(1)));
  EXPECT_EQ("element_count", decode(image_spec(), "[[1,2,3],[4,5]]\n", kLines).status().reason());
  EXPECT_EQ("too_long", decode(image_spec(), "[[1,2,3,4,5,6,7,8,9]]\n", kLines).status().reason());
  EXPECT_EQ("zero_length", decode(image_spec(), "[]\n", kLines).status().reason());
}

TEST(SageMakerDecode, RowsThatStayTogetherMustBeAbleToMeet) {
  const auto spec = image_spec(model::RowsRule::kTogether);
  EXPECT_TRUE(decode(spec, "[[1,2]]\n[[3,4]]\n", kLines).is_ok());
  EXPECT_EQ("sizes_differ", decode(spec, "[[1,2]]\n[[3],[4]]\n", kLines).status().reason());
}

std::vector<float> floats(const Result<Decoded>& decoded) {
  if (!decoded.is_ok()) return {};
  return values_of<float>(decoded.value().request.inputs[0]->data.view());
}

TEST(SageMakerDecode, TheSameRowsInEveryForm) {
  const std::vector<float> expected = {1, 2.5F, -3, 4};
  const struct {
    const char* type;
    const char* body;
  } cases[] = {{kJson, R"({"instances":[[1,2.5],[-3,4]]})"},
               {kJson, R"({"other":{"a":1},"instances":[[1,2.5],[-3,4]],"more":[]})"},
               {kJson, R"({"instances":[{"x":[1,2.5]},{"x":[-3,4]}]})"},
               {kJson, "[[1,2.5],[-3,4]]"},
               {kLines, "[1,2.5]\n[-3,4]\n"},
               {kLines, "[1,2.5]\r\n{\"x\":[-3,4]}\n\n"},
               {kCsv, "1,2.5\n-3,4\n"},
               {kCsv, "\"1\", 2.5\r\n-3.0e0,4"}};
  for (const auto& c : cases) {
    const auto decoded = decode(pair_spec(), c.body, c.type);
    ASSERT_TRUE(decoded.is_ok()) << c.body << decoded.status().to_string();
    EXPECT_EQ(expected, floats(decoded)) << c.body;
    EXPECT_EQ(2U, decoded.value().request.rows);
    EXPECT_EQ(8U, decoded.value().request.inputs[0]->row_bytes);
  }
}

TEST(SageMakerDecode, ABareListOfNumbersIsOneRow) {
  const auto decoded = decode(pair_spec(), "[1,2]", kJson);
  EXPECT_EQ((std::vector<float>{1, 2}), floats(decoded));
  EXPECT_EQ(1U, decoded.value().request.rows);
}

TEST(SageMakerDecode, RowsMayDifferInLengthWhereADimIsFree) {
  const struct {
    const char* type;
    const char* body;
  } cases[] = {{kJson, R"({"instances":[[1,2,3],[4]]})"}, {kLines, "[1,2,3]\n[4]"}, {kCsv, "1,2,3\n4\n"}};
  for (const auto& c : cases) {
    const auto decoded = decode(testkit::encoder_spec(), c.body, c.type);
    ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
    const auto& request = decoded.value().request;
    EXPECT_EQ((std::vector<std::uint32_t>{3, 1}), request.lengths);
    EXPECT_EQ((std::vector<std::int64_t>{1, 2, 3}), values_of<std::int64_t>(request.inputs[0]->row(0)));
    EXPECT_EQ((std::vector<std::int64_t>{4}), values_of<std::int64_t>(request.inputs[0]->row(1)));
  }
}

TEST(SageMakerDecode, LongRowsAreRefusedOrCutByTheModelsRule) {
  auto spec = testkit::encoder_spec();
  spec.max_length = 2;
  EXPECT_EQ("too_long", decode(spec, "1,2,3\n4\n", kCsv).status().reason());
  spec.too_long = model::TooLong::kTruncate;
  const auto decoded = decode(spec, "1,2,3\n4\n", kCsv);
  ASSERT_TRUE(decoded.is_ok());
  EXPECT_EQ(1U, decoded.value().request.truncated_rows);
  EXPECT_EQ((std::vector<std::int64_t>{1, 2, 4}),
            values_of<std::int64_t>(decoded.value().request.inputs[0]->data.view()));
  EXPECT_EQ((std::vector<std::uint32_t>{2, 1}), decoded.value().request.lengths);
}

TEST(SageMakerDecode, TextsComeOnePerRecord) {
  const struct {
    const char* type;
    const char* body;
    Texts texts;
  } cases[] = {{kJson, R"({"instances":["good, really","b\u00e4d"]})", {"good, really", "bäd"}},
               {kJson, R"({"instances":[{"text":"good"}]})", {"good"}},
               {kJson, R"(["a","b"])", {"a", "b"}},
               {kJson, R"("one")", {"one"}},
               {kLines, "\"a\"\n{\"text\":\"b\"}\n", {"a", "b"}},
               {kCsv, "plain, with a comma\r\n\"quoted, too\"\n", {"plain, with a comma", "quoted, too"}},
               {"text/plain", "all of\nit, \"one\" text", {"all of\nit, \"one\" text"}}};
  for (const auto& c : cases) {
    const auto decoded = decode(text_spec(), c.body, c.type);
    ASSERT_TRUE(decoded.is_ok()) << c.body << decoded.status().to_string();
    EXPECT_EQ(c.texts, decoded.value().texts);
    EXPECT_EQ(c.texts.size(), decoded.value().request.rows);
    EXPECT_TRUE(decoded.value().request.inputs.empty());
  }
}

TEST(SageMakerDecode, ATokenizerModelTakesRowsOfIdsToo) {
  const auto decoded = decode(text_spec(), R"({"instances":[[101,7,102]]})", kJson);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_TRUE(decoded.value().texts.empty());
  EXPECT_EQ("text_and_ids", decode(text_spec(), R"([[101],"a"])", kJson).status().reason());
  EXPECT_EQ("text_and_ids", decode(text_spec(), R"(["a",[101]])", kJson).status().reason());
}

TEST(SageMakerDecode, CsvCellsThatAreNotNumbersAreNamedByRowAndColumn) {
  const struct {
    const char* body;
    const char* reason;
    const char* where;
  } cases[] = {{"1,2\n3,abc\n", "bad_cell", "row 2, column 2"},
               {"1,2\n,3\n", "bad_cell", "row 2, column 1"},
               {"1,nan\n", "bad_cell", "row 1, column 2"},
               {"inf,1\n", "bad_cell", "row 1, column 1"},
               {"1,1e400\n", "bad_cell", "row 1, column 2"},
               {"a,b\n1,2\n", "bad_cell", "row 1, column 1"},
               {"1,2\n\n3,4\n", "bad_cell", "row 2, column 1"},
               {"1,2,\n", "bad_cell", "row 1, column 3"},
               {"1 2,3\n", "bad_cell", "row 1, column 1"},
               {"1,0x10\n", "bad_cell", "row 1, column 2"},
               {"1\n", "element_count", "row 1"},
               {"1,2,3\n", "element_count", "row 1"},
               {"1,\"2\n", "bad_csv", "row 1, column 2"}};
  for (const auto& c : cases) {
    const Status status = decode(pair_spec(), c.body, kCsv).status();
    EXPECT_EQ(c.reason, status.reason()) << c.body;
    EXPECT_NE(std::string::npos, status.detail().find(c.where)) << status.detail();
  }
  EXPECT_EQ("bad_cell", decode(pair_spec(DataType::kInt64), "1,2.5\n", kCsv).status().reason());
  EXPECT_EQ("bad_cell", decode(pair_spec(DataType::kUint8), "1,256\n", kCsv).status().reason());
  EXPECT_EQ("bad_cell", decode(pair_spec(DataType::kInt64), "1,nan\n", kCsv).status().reason());
}

TEST(SageMakerDecode, RefusesBodiesThatAreNotRows) {
  const struct {
    const char* type;
    const char* body;
    const char* reason;
  } cases[] = {{kJson, "", "bad_request"},
               {kJson, "7", "bad_request"},
               {kJson, "{}", "bad_request"},
               {kJson, "[]", "no_rows"},
               {kJson, R"({"instances":[]})", "no_rows"},
               {kJson, R"({"instances":7})", "bad_request"},
               {kJson, R"({"instances":[[1,2]],"instances":[[1,2]]})", "duplicate_key"},
               {kJson, R"({"instances":[[1,2,3]]})", "element_count"},
               {kJson, R"({"instances":[[1,[2]]]})", "bad_value"},
               {kJson, R"({"instances":[1,2]})", "bad_record"},
               {kJson, R"({"instances":["a"]})", "bad_record"},
               {kJson, R"({"instances":[{"z":[1,2]}]})", "bad_record"},
               {kJson, R"({"instances":[{}]})", "bad_record"},
               {kJson, R"({"instances":[{"x":[1,2],"z":1}]})", "bad_record"},
               {kJson, R"({"instances":[[1,2]]} x)", "bad_json"},
               {kJson, R"([[1,2])", "bad_json"},
               {kLines, "[1,2] [3,4]\n", "bad_json"},
               {kLines, "[1,2]\n\n[3,4]\n", "bad_record"},
               {kLines, "", "no_rows"},
               {kCsv, "", "no_rows"}};
  for (const auto& c : cases)
    EXPECT_EQ(c.reason, decode(pair_spec(), c.body, c.type).status().reason()) << c.body;
  EXPECT_EQ("no_rows", decode(text_spec(), "", "text/plain").status().reason());
  EXPECT_EQ("bad_record", decode(text_spec(), "\"a\",\"b\"\n", kCsv).status().reason());
  EXPECT_EQ("zero_length", decode(testkit::encoder_spec(), R"({"instances":[[]]})", kJson).status().reason());
  EXPECT_EQ("value_range", decode(testkit::encoder_spec(), "1\n2,30522\n", kCsv).status().reason());
}

TEST(SageMakerDecode, DeepNestingIsRefusedInEveryJsonForm) {
  const std::string deep = std::string(250'000, '[') + std::string(250'000, ']');
  EXPECT_FALSE(decode(pair_spec(), deep, kJson).is_ok());
  EXPECT_FALSE(decode(pair_spec(), R"({"instances":)" + deep + "}", kJson).is_ok());
  EXPECT_EQ("json_depth", decode(pair_spec(), R"({"other":)" + deep + "}", kJson).status().reason());
  EXPECT_FALSE(decode(pair_spec(), deep, kLines).is_ok());
}

TEST(SageMakerDecode, MoreRowsThanAllowedAreRefusedWhileReading) {
  auto spec = pair_spec();
  spec.max_rows_per_request = 2;
  EXPECT_EQ("too_many_rows", decode(spec, "1,2\n1,2\n1,2\n", kCsv).status().reason());
}

TEST(SageMakerDecode, AModelOfSeveralInputsWantsAV2Request) {
  const auto spec = testkit::model_spec(
      "two", {tensor_spec("a", DataType::kFp32, {-1, 1}), tensor_spec("b", DataType::kFp32, {-1, 1})}, {});
  const Status status = decode(spec, "[[1]]", kJson).status();
  EXPECT_EQ("several_inputs", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("a, b"));
  const auto v2 = decode(spec, R"({"id":"7","inputs":[{"name":"a","shape":[1,1],"datatype":"FP32","data":[1]},
    {"name":"b","shape":[1,1],"datatype":"FP32","data":[2]}]})",
                         kJson);
  ASSERT_TRUE(v2.is_ok()) << v2.status().to_string();
  EXPECT_EQ(BodyForm::kV2, v2.value().format.form);
  EXPECT_EQ("7", v2.value().request.id);
}

TEST(SageMakerDecode, OneValuePerRowNeedsNoBrackets) {
  const auto spec = testkit::model_spec("one", {tensor_spec("x", DataType::kFp32, {-1, 1})}, {});
  EXPECT_EQ((std::vector<float>{1, 2, 3}), floats(decode(spec, R"({"instances":[1,[2],3]})", kJson)));
  EXPECT_EQ((std::vector<float>{1, 2}), floats(decode(spec, "[1,2]", kJson)));
}

TEST(SageMakerDecode, TheReplyTakesTheFormThatIsAccepted) {
  EXPECT_EQ(BodyForm::kCsv, decode(pair_spec(), "1,2\n", kCsv).value().format.form);
  EXPECT_EQ(BodyForm::kJson, decode(pair_spec(), "1,2\n", kCsv, kJson).value().format.form);
  EXPECT_EQ(BodyForm::kJson, decode(text_spec(), "text", "text/plain", "*/*").value().format.form);
  EXPECT_EQ(Code::kNotAcceptable, decode(pair_spec(), "1,2\n", kCsv, "image/png").status().code());
  EXPECT_EQ(Code::kUnsupportedMedia, decode(pair_spec(), "1,2\n", "application/x-npy").status().code());
}

}  // namespace
}  // namespace tonnage::codec::sagemaker
