// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/v2/v2.h"
#include "testkit/model_specs.h"
#include "testkit/requests.h"

namespace tonnage::codec::v2 {
namespace {

using tensor::DataType;
using testkit::strings_of;
using testkit::tensor_spec;
using testkit::values_of;

model::ModelSpec echo_spec() {
  return testkit::model_spec("echo", {tensor_spec("x", DataType::kFp32, {-1, 2})},
                             {tensor_spec("y", DataType::kFp32, {-1, 2})});
}

model::ModelSpec spec_of(DataType type) {
  return testkit::model_spec("typed", {tensor_spec("x", type, {-1, 2})}, {tensor_spec("y", type, {-1, 2})});
}

model::ModelSpec text_spec() {
  auto spec = testkit::encoder_spec();
  spec.tokenizer = model::TokenizerSpec{"wordpiece", "vocab.txt", true};
  return spec;
}

Result<Decoded> decode(const model::ModelSpec& spec, std::string body,
                       std::optional<std::size_t> json_length = std::nullopt) {
  body.reserve(body.size() + 64);
  return decode_infer(spec, body, json_length);
}

std::string x_request(const std::string& shape, const std::string& data, const std::string& type = "FP32") {
  return R"({"inputs":[{"name":"x","shape":)" + shape + R"(,"datatype":")" + type + R"(","data":)" + data +
         "}]}";
}

TEST(V2Decode, ReadsNestedAndFlatDataAlike) {
  for (const char* data :
       {"[1,2,3.5,-4]", "[[1,2],[3.5,-4]]", " [ [1 , 2] , [3.5,-4e0] ] ", "[1,2,[3.5,-4]]"}) {
    const auto decoded = decode(echo_spec(), x_request("[2,2]", data));
    ASSERT_TRUE(decoded.is_ok()) << data << decoded.status().to_string();
    EXPECT_EQ(2U, decoded.value().request.rows);
    EXPECT_EQ((std::vector<float>{1, 2, 3.5, -4}),
              values_of<float>(decoded.value().request.inputs[0]->data.view()));
    EXPECT_EQ(8U, decoded.value().request.inputs[0]->row_bytes);
  }
}

TEST(V2Decode, TheOrderOfKeysDoesNotMatterAndUnknownKeysAreIgnored) {
  const auto decoded =
      decode(echo_spec(), R"({"model_name":"echo","outputs":null,"parameters":{"mine":{"a":[1]}},
    "inputs":[{"data":[1,2],"extra":{"data":[9]},"datatype":"FP32","parameters":{"pd":true},"shape":[1,2],"name":"x"}],
    "id":"42"})");
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ("42", decoded.value().request.id);
  EXPECT_EQ((std::vector<float>{1, 2}), values_of<float>(decoded.value().request.inputs[0]->data.view()));
}

TEST(V2Decode, RefusalsOfOneInputNameWhatIsWrong) {
  const struct {
    const char* shape;
    const char* data;
    const char* reason;
    const char* named;
  } cases[] = {
      {"[-1,2]", "[1,2]", "bad_dim", "dim 0 is -1"},
      {"[1,-9223372036854775808]", "[1,2]", "bad_dim", "dim 1 is -9223372036854775808"},
      {"[9223372036854775808,2]", "[1,2]", "bad_dim", "dim 0 is 9223372036854775808"},
      {"[-0.0,2]", "[1,2]", "bad_dim", "dim 0 is -0.0"},
      {"[1.5,2]", "[1,2]", "bad_dim", "dim 0 is 1.5"},
      {"[1,1e3]", "[1,2]", "bad_dim", "dim 1 is 1e3"},
      {"[8,2305843009213693954]", "[1]", "too_many_elements", "input 'x'"},
      {"[2,2305843009213693953]", "[1,2]", "too_many_elements", "input 'x'"},
      {"[1,1,1,1,1,1,1,1,2]", "[1,2]", "bad_rank", "input 'x'"},
      {"[2]", "[1,2]", "bad_shape", "[-1,2]"},
      {"[1,3]", "[1,2,3]", "bad_shape", "dim 1 must be 2"},
      {"[0,2]", "[]", "no_rows", ""},
      {"[1,\"2\"]", "[1,2]", "bad_request", "whole numbers"},
      {"2", "[1,2]", "bad_request", "input 'x'"},
      {"[1,2]", "[1]", "element_count", "shape [1,2] has 2 elements, its data has 1"},
      {"[1,2]", "[1,2,3]", "element_count", "its data has more"},
      {"[59,2]", "[1]", "element_count", "input 'x'"},
      {"[1,2]", "[[[1,2]]]", "element_count", "nested"},
      {"[2,2]", "[[1],[2,3,4]]", "element_count", "nested"},
      {"[2,2]", "[1,[2,3],4]", "element_count", "nested"},
      {"[1,2]", "[[1,2],[]]", "element_count", "nested"},
      {"[1,2]", "[1,null]", "bad_value", "row 0, position 1"},
      {"[2,2]", "[1,2,3,\"4\"]", "bad_value", "row 1, position 1"},
      {"[1,2]", "[1,1e400]", "bad_value", "'1e400' is outside FP32"},
      {"[1,2]", "[1,1e39]", "bad_value", "outside FP32"},
      {"[1,2]", "{}", "bad_request", "'data'"},
      {"[1,2]", "[1,NaN]", "bad_value", "a number is expected"},
      {"[1,2]", "[1,01]", "bad_json", "leading zeros"},
  };
  for (const auto& c : cases) {
    const Status status = decode(echo_spec(), x_request(c.shape, c.data)).status();
    EXPECT_EQ(c.reason, status.reason()) << c.shape << " " << c.data;
    EXPECT_EQ(Code::kInvalidArgument, status.code());
    EXPECT_NE(std::string::npos, status.detail().find(c.named)) << status.detail();
  }
}

TEST(V2Decode, RefusesBodiesThatAreNotRequests) {
  const struct {
    const char* body;
    const char* reason;
  } cases[] = {
      {"", "bad_json"},
      {"[]", "bad_json"},
      {"{", "bad_json"},
      {"{}", "missing_inputs"},
      {R"({"inputs":{}})", "bad_request"},
      {R"({"inputs":[1]})", "bad_request"},
      {R"({"inputs":[]})", "missing_input"},
      {R"({"inputs":[{}]})", "missing_name"},
      {R"({"inputs":[{"name":"x"}]})", "bad_request"},
      {R"({"inputs":[{"name":"x","shape":[1,2]}]})", "bad_request"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32"}]})", "no_data"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP99","data":[1,2]}]})", "bad_datatype"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"INT32","data":[1,2]}]})", "wrong_datatype"},
      {R"({"inputs":[{"name":"z","shape":[1,2],"datatype":"FP32","data":[1,2]}]})", "unknown_input"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]},
                     {"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})",
       "duplicate_input"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2],"shape":[1,9]}]})",
       "duplicate_key"},
      {R"({"inputs":[],"inputs":[]})", "duplicate_key"},
      {R"({"id":7,"inputs":[]})", "bad_request"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]} x)", "bad_json"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}],"outputs":[{"name":"q"}]})",
       "unknown_output"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}],"outputs":[{"name":"y"},{"name":"y"}]})",
       "duplicate_output"},
      {R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}],"outputs":[{}]})",
       "missing_name"},
  };
  for (const auto& c : cases) EXPECT_EQ(c.reason, decode(echo_spec(), c.body).status().reason()) << c.body;
}

TEST(V2Decode, RefusesDeepNestingWhereverItStands) {
  const std::string open(250'000, '[');
  const std::string close(250'000, ']');
  EXPECT_EQ("json_depth", decode(echo_spec(), R"({"unknown":)" + open + close + "}").status().reason());
  EXPECT_EQ("element_count", decode(echo_spec(), x_request("[1,2]", open + close)).status().reason());
  EXPECT_EQ("json_depth",
            decode(echo_spec(), R"({"inputs":[{"data":)" + open + close + "}]}").status().reason());
}

TEST(V2Decode, IntegersStayInsideTheirDatatype) {
  const struct {
    DataType type;
    const char* good;
    const char* bad;
  } cases[] = {{DataType::kUint8, "[0,255]", "[0,256]"},
               {DataType::kUint16, "[0,65535]", "[-1,0]"},
               {DataType::kUint32, "[0,4294967295]", "[0,4294967296]"},
               {DataType::kUint64, "[0,18446744073709551615]", "[0,18446744073709551616]"},
               {DataType::kInt8, "[-128,127]", "[0,128]"},
               {DataType::kInt16, "[-32768,32767]", "[-32769,0]"},
               {DataType::kInt32, "[-2147483648,2147483647]", "[2147483648,0]"},
               {DataType::kInt64, "[-9223372036854775808,9223372036854775807]", "[9223372036854775808,0]"},
               {DataType::kInt64, "[0,-0]", "[1.0,0]"},
               {DataType::kInt32, "[0,1]", "[1e2,0]"},
               {DataType::kBool, "[true,false]", "[2,0]"},
               {DataType::kBool, "[1,0]", "[\"true\",false]"},
               {DataType::kFp64, "[1e308,-1e-400]", "[1e309,0]"},
               {DataType::kBytes, R"(["a","é"])", "[1,2]"}};
  for (const auto& c : cases) {
    const std::string name(tensor::datatype_name(c.type));
    const auto good = decode(spec_of(c.type), x_request("[1,2]", c.good, name));
    EXPECT_TRUE(good.is_ok()) << name << good.status().to_string();
    EXPECT_EQ("bad_value", decode(spec_of(c.type), x_request("[1,2]", c.bad, name)).status().reason())
        << name;
  }
}

TEST(V2Decode, HalfFloatsDoNotTravelInJson) {
  for (const DataType type : {DataType::kFp16, DataType::kBf16}) {
    const std::string name(tensor::datatype_name(type));
    EXPECT_EQ("not_in_json", decode(spec_of(type), x_request("[1,2]", "[1,2]", name)).status().reason());
    const std::string head = R"({"inputs":[{"name":"x","shape":[1,2],"datatype":")" + name +
                             R"(","parameters":{"binary_data_size":4}}])";
    const auto as_json = decode(spec_of(type), head + "}abcd", head.size() + 1);
    EXPECT_EQ("not_in_json", as_json.status().reason());  // the output would have to be JSON
    const std::string binary = head + R"(,"parameters":{"binary_data_output":true}})";
    EXPECT_TRUE(decode(spec_of(type), binary + "abcd", binary.size()).is_ok());
  }
}

TEST(V2Decode, ValuesOutsideTheSpecsRangeAreNamedByRowAndPosition) {
  const auto decoded = decode(testkit::encoder_spec(), R"({"inputs":[{"name":"input_ids","shape":[2,3],
    "datatype":"INT64","data":[101,5,102,101,30522,102]}]})");
  EXPECT_EQ("value_range", decoded.status().reason());
  EXPECT_NE(std::string::npos,
            decoded.status().detail().find("'input_ids', row 1, position 1: 30522 is outside 0 to 30521"))
      << decoded.status().detail();
}

std::string ids_request(const std::string& ids_shape, const std::string& ids, const std::string& mask_shape,
                        const std::string& mask) {
  return R"({"inputs":[{"name":"input_ids","shape":)" + ids_shape + R"(,"datatype":"INT64","data":)" + ids +
         R"(},{"name":"attention_mask","shape":)" + mask_shape + R"(,"datatype":"INT64","data":)" + mask +
         "}]}";
}

TEST(V2Decode, AMaskMayBeSentOrLeftToTheServer) {
  const auto with = decode(testkit::encoder_spec(), ids_request("[1,2]", "[5,6]", "[1,2]", "[1,0]"));
  ASSERT_TRUE(with.is_ok());
  EXPECT_TRUE(with.value().request.inputs[1].has_value());
  const auto without =
      decode(testkit::encoder_spec(),
             R"({"inputs":[{"name":"input_ids","shape":[1,2],"datatype":"INT64","data":[5,6]}]})");
  ASSERT_TRUE(without.is_ok());
  EXPECT_FALSE(without.value().request.inputs[1].has_value());
  EXPECT_EQ(2U, without.value().request.length);
}

TEST(V2Decode, InputsAgreeOnRowsAndLength) {
  EXPECT_EQ(
      "rows_differ",
      decode(testkit::encoder_spec(), ids_request("[1,2]", "[5,6]", "[2,2]", "[1,0,1,1]")).status().reason());
  EXPECT_EQ(
      "lengths_differ",
      decode(testkit::encoder_spec(), ids_request("[1,2]", "[5,6]", "[1,3]", "[1,0,1]")).status().reason());
  EXPECT_EQ("zero_length",
            decode(testkit::encoder_spec(), ids_request("[2,0]", "[]", "[2,0]", "[]")).status().reason());
}

TEST(V2Decode, RowsAndLengthsAboveTheLimitsAreTooLarge) {
  auto spec = testkit::encoder_spec();
  spec.max_length = 3;
  spec.max_rows_per_request = 2;
  const Status length = decode(spec, ids_request("[1,4]", "[1,2,3,4]", "[1,4]", "[1,1,1,1]")).status();
  EXPECT_EQ("too_long", length.reason());
  EXPECT_EQ(Code::kTooLarge, length.code());
  const Status rows = decode(spec, ids_request("[3,1]", "[1,2,3]", "[3,1]", "[1,1,1]")).status();
  EXPECT_EQ("too_many_rows", rows.reason());
  EXPECT_EQ(Code::kTooLarge, rows.code());
}

TEST(V2Decode, ATruncatingModelCutsEveryInputWithALength) {
  auto spec = testkit::encoder_spec();
  spec.max_length = 2;
  spec.too_long = model::TooLong::kTruncate;
  const auto decoded = decode(spec, ids_request("[2,3]", "[1,2,3,4,5,6]", "[2,3]", "[1,1,0,1,0,1]"));
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  const auto& request = decoded.value().request;
  EXPECT_EQ(2U, request.length);
  EXPECT_EQ(2U, request.truncated_rows);
  EXPECT_EQ((std::vector<std::int64_t>{1, 2, 4, 5}), values_of<std::int64_t>(request.inputs[0]->data.view()));
  EXPECT_EQ((std::vector<std::int64_t>{1, 1, 1, 0}), values_of<std::int64_t>(request.inputs[1]->data.view()));
  EXPECT_EQ(16U, request.inputs[0]->row_bytes);
}

model::ModelSpec image_spec() {
  auto image = tensor_spec("image", DataType::kUint8, {-1, 2, -1, -1});
  image.sizes = {0, 0, 0, 1};
  auto mask = tensor_spec("mask", DataType::kUint8, {-1, -1, -1});
  mask.sizes = {0, 0, 1};
  mask.source = model::InputSource::kMask;
  auto spec = testkit::model_spec("images", {image, mask}, {});
  spec.sizes = {{"height", 8, model::MeetRule::kGroup, 1}, {"width", 12, model::MeetRule::kPad, 4}};
  spec.max_length = 96;
  return spec;
}

std::string image_request(const std::string& shape, std::size_t elements, const std::string& more = "") {
  std::string data = "0";
  for (std::size_t i = 1; i < elements; ++i) data += ",0";
  return R"({"inputs":[{"name":"image","shape":)" + shape + R"(,"datatype":"UINT8","data":[)" +
         (elements == 0 ? "" : data) + "]}" + more + "]}";
}

TEST(V2Decode, RowsOfAModelWithSizesCarryThemBesideTheirPaddedLength) {
  const auto decoded = decode(image_spec(), image_request("[2,2,3,5]", 60));
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(3U, decoded->request.row_size(1).at[0]);
  EXPECT_EQ(5U, decoded->request.row_size(1).at[1]);
  EXPECT_EQ(3U * 8, decoded->request.row_length(1));
}

TEST(V2Decode, RefusesSizesThatAreZeroTooLargeOrDiffer) {
  const auto refusal = [](const std::string& body) { return decode(image_spec(), body).status(); };
  EXPECT_EQ("zero_length", refusal(image_request("[1,2,0,5]", 0)).reason());
  EXPECT_EQ("too_long", refusal(image_request("[1,2,9,1]", 18)).reason());
  const Status wide = refusal(image_request("[1,2,1,13]", 26));
  EXPECT_EQ(Code::kTooLarge, wide.code());
  EXPECT_NE(std::string::npos, wide.detail().find("width 13; the model 'images' takes at most 12"))
      << wide.detail();
  EXPECT_EQ("too_many_elements", refusal(image_request("[1,2,4294967296,4294967296]", 1)).reason());
  EXPECT_EQ("too_long", refusal(image_request("[1,2,4294967297,1]", 1)).reason()) << "not taken modulo 2^32";
  const std::string mask =
      R"(,{"name":"mask","shape":[1,3,4],"datatype":"UINT8","data":[1,1,1,1,1,1,1,1,1,1,1,1]})";
  const Status differ = refusal(image_request("[1,2,3,5]", 30, mask));
  EXPECT_EQ("lengths_differ", differ.reason());
  EXPECT_NE(std::string::npos, differ.detail().find("'mask' has width 4")) << differ.detail();
}

TEST(V2Decode, ATokenizerModelTakesTextOrIds) {
  for (const char* shape : {"[2]", "[2,1]"}) {
    const auto texts = decode(
        text_spec(), R"({"inputs":[{"name":"text","datatype":"BYTES","data":["good","b\u00e4d"],"shape":)" +
                         std::string(shape) + "}]}");
    ASSERT_TRUE(texts.is_ok()) << texts.status().to_string();
    EXPECT_EQ((std::vector<std::string>{"good", "bäd"}), texts.value().texts);
    EXPECT_EQ(2U, texts.value().request.rows);
    EXPECT_TRUE(texts.value().request.inputs.empty());
  }
  const auto ids = decode(text_spec(), ids_request("[1,2]", "[5,6]", "[1,2]", "[1,1]"));
  ASSERT_TRUE(ids.is_ok());
  EXPECT_TRUE(ids.value().texts.empty());
}

TEST(V2Decode, TextAndIdsTogetherOrTextWithoutTokenizerAreRefused) {
  const std::string text = R"({"name":"text","datatype":"BYTES","data":["a"],"shape":[1]})";
  const std::string ids = R"({"name":"input_ids","datatype":"INT64","data":[1],"shape":[1,1]})";
  EXPECT_EQ("text_and_ids",
            decode(text_spec(), R"({"inputs":[)" + text + "," + ids + "]}").status().reason());
  EXPECT_EQ("duplicate_input",
            decode(text_spec(), R"({"inputs":[)" + text + "," + text + "]}").status().reason());
  EXPECT_EQ("unknown_input",
            decode(testkit::encoder_spec(), R"({"inputs":[)" + text + "]}").status().reason());
  EXPECT_EQ("no_rows",
            decode(text_spec(), R"({"inputs":[{"name":"text","datatype":"BYTES","data":[],"shape":[0]}]})")
                .status()
                .reason());
}

std::string with_parameters(const std::string& parameters) {
  return R"({"parameters":)" + parameters +
         R"(,"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})";
}

TEST(V2Decode, ReadsRequestParameters) {
  const auto decoded = decode(
      echo_spec(),
      with_parameters(
          R"({"timeout":1500,"priority":3,"binary_data_output":true,"sequence_id":0,"sequence_start":false,"mine":"x"})"));
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(Duration(microseconds(1500)), decoded.value().timeout);
  EXPECT_EQ(3, decoded.value().request.priority);
  EXPECT_TRUE(decoded.value().format.binary_by_default);
  EXPECT_FALSE(decode(echo_spec(), with_parameters(R"({"timeout":0})")).value().timeout.has_value());
  const auto huge =
      decode(echo_spec(), with_parameters(R"({"timeout":18446744073709551615,"priority":300})"));
  EXPECT_GT(huge.value().timeout, Duration(seconds(1'000'000)));
  EXPECT_EQ(255, huge.value().request.priority);
}

TEST(V2Decode, RefusesBadAndReservedParameters) {
  const struct {
    const char* parameters;
    const char* reason;
  } cases[] = {{R"({"timeout":-1})", "bad_parameter"},
               {R"({"timeout":"5"})", "bad_parameter"},
               {R"({"priority":1.5})", "bad_parameter"},
               {R"({"binary_data_output":1})", "bad_parameter"},
               {R"({"triton_x":1})", "reserved_parameter"},
               {R"({"sequence_id":7})", "sequences"},
               {R"([])", "bad_parameter"}};
  for (const auto& c : cases) {
    EXPECT_EQ(c.reason, decode(echo_spec(), with_parameters(c.parameters)).status().reason()) << c.parameters;
  }
}

TEST(V2Decode, SelectsOutputsWithTheirOwnForm) {
  const auto decoded =
      decode(echo_spec(), R"({"outputs":[{"parameters":{"classification":2,"binary_data":false},"name":"y"}],
    "parameters":{"binary_data_output":true},"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})");
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  const auto& selections = decoded.value().format.selections;
  ASSERT_EQ(1U, selections.size());
  EXPECT_EQ("y", selections[0].name);
  EXPECT_FALSE(selections[0].binary);
  EXPECT_EQ(2U, selections[0].classification);
}

TEST(V2Decode, SharedMemoryIsSaidToBeUnimplemented) {
  const Status input = decode(echo_spec(), R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32",
    "parameters":{"shared_memory_region":"r","shared_memory_byte_size":8}}]})")
                           .status();
  EXPECT_EQ(Code::kUnimplemented, input.code());
  EXPECT_EQ("shared_memory", input.reason());
}

}  // namespace
}  // namespace tonnage::codec::v2
