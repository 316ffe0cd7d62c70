// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <simdjson.h>

#include <bit>
#include <limits>

#include "base/random.h"
#include "codec/elements.h"
#include "codec/v2/v2.h"
#include "testkit/model_specs.h"
#include "testkit/requests.h"

namespace tonnage::codec::v2 {
namespace {

using tensor::DataType;
using testkit::output_tensor;
using testkit::tensor_spec;

model::ModelSpec spec() {
  auto spec = testkit::model_spec(
      "m", {tensor_spec("x", DataType::kFp32, {-1, 2})},
      {tensor_spec("y", DataType::kFp32, {-1, 2}), tensor_spec("z", DataType::kBytes, {-1, 1})});
  spec.labels = {"bad", "good"};
  return spec;
}

request::Answer answer() {
  request::Answer answer;
  answer.outputs.push_back(output_tensor<float>("y", DataType::kFp32, {2, 2}, {0.25F, 0.75F, 1e-7F, -2}));
  answer.outputs.push_back(testkit::string_output("z", {2, 1}, {"a\"b", "é"}));
  return answer;
}

TEST(V2Encode, WritesFlatArraysWithoutParameters) {
  const auto encoded = encode_infer(spec(), {}, answer(), {});
  ASSERT_TRUE(encoded.is_ok());
  EXPECT_EQ(R"({"model_name":"m","model_version":"1","outputs":[)"
            R"({"name":"y","datatype":"FP32","shape":[2,2],"data":[0.25,0.75,1e-07,-2]},)"
            R"({"name":"z","datatype":"BYTES","shape":[2,1],"data":["a\"b","é"]}]})",
            encoded.value().body);
  EXPECT_EQ("application/json", encoded.value().content_type);
  EXPECT_FALSE(encoded.value().json_length.has_value());
}

TEST(V2Encode, EchoesTheIdAndMarksTruncationChunksAndFallback) {
  request::Request request;
  request.id = "q\"1";
  request::Answer marked;
  marked.truncated_rows = 3;
  marked.chunked_rows = 2;
  marked.fallback_model = "small";
  EXPECT_EQ(
      R"({"model_name":"m","model_version":"1","id":"q\"1","parameters":{"truncated_rows":3,"chunked_rows":2,"fallback_model":"small"},"outputs":[]})",
      encode_infer(spec(), request, marked, {}).value().body);
}

TEST(V2Encode, BinaryOutputsFollowTheJsonInItsOrder) {
  ReplyFormat format;
  format.selections = {{"z", true, 0}, {"y", true, 0}};
  const auto encoded = encode_infer(spec(), {}, answer(), format);
  ASSERT_TRUE(encoded.is_ok());
  const auto& [type, json_length, body] = encoded.value();
  EXPECT_EQ("application/octet-stream", type);
  ASSERT_TRUE(json_length.has_value());
  const std::string json = body.substr(0, *json_length);
  EXPECT_EQ(R"({"model_name":"m","model_version":"1","outputs":[)"
            R"({"name":"z","datatype":"BYTES","shape":[2,1],"parameters":{"binary_data_size":13}},)"
            R"({"name":"y","datatype":"FP32","shape":[2,2],"parameters":{"binary_data_size":16}}]})",
            json);
  const auto outputs = answer();
  EXPECT_EQ(std::string(as_text(outputs.outputs[1].data.view())) +
                std::string(as_text(outputs.outputs[0].data.view())),
            body.substr(*json_length));
}

TEST(V2Encode, ASelectionMayMixBothForms) {
  ReplyFormat format;
  format.selections = {{"y", true, 0}, {"z", false, 0}};
  const auto encoded = encode_infer(spec(), {}, answer(), format);
  EXPECT_EQ(encoded.value().body.size(), *encoded.value().json_length + 16);
}

TEST(V2Encode, ClassificationGivesTheLargestValuesWithLabels) {
  ReplyFormat format;
  format.selections = {{"y", false, 5}};
  const auto encoded = encode_infer(spec(), {}, answer(), format);
  EXPECT_EQ(
      R"({"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"BYTES","shape":[2,2],"data":)"
      R"(["0.750000:1:good","0.250000:0:bad","0.000000:0:bad","-2.000000:1:good"]}]})",
      encoded.value().body);
  format.selections = {{"y", true, 1}};
  const auto top = encode_infer(spec(), {}, answer(), format);
  EXPECT_NE(std::string::npos, top.value().body.find(R"("shape":[2,1],"parameters":{"binary_data_size":)"));
}

TEST(V2Encode, StringsThatAreNotUtf8MustGoBinary) {
  request::Answer bad;
  bad.outputs.push_back(testkit::string_output("z", {1, 1}, {"\xff"}));
  EXPECT_EQ("not_in_json", encode_infer(spec(), {}, bad, {}).status().reason());
  ReplyFormat format;
  format.selections = {{"z", true, 0}};
  EXPECT_TRUE(encode_infer(spec(), {}, bad, format).is_ok());
}

TEST(V2Encode, EveryDatatypeIsWrittenAsItsValue) {
  const struct {
    request::OutputTensor output;
    const char* data;
  } cases[] = {
      {output_tensor<std::uint8_t>("y", DataType::kBool, {2}, {1, 0}), "[true,false]"},
      {output_tensor<std::uint8_t>("y", DataType::kUint8, {2}, {0, 255}), "[0,255]"},
      {output_tensor<std::int8_t>("y", DataType::kInt8, {2}, {-128, 127}), "[-128,127]"},
      {output_tensor<std::uint16_t>("y", DataType::kUint16, {1}, {65535}), "[65535]"},
      {output_tensor<std::int16_t>("y", DataType::kInt16, {1}, {-32768}), "[-32768]"},
      {output_tensor<std::uint32_t>("y", DataType::kUint32, {1}, {4294967295}), "[4294967295]"},
      {output_tensor<std::int32_t>("y", DataType::kInt32, {1}, {-2147483647}), "[-2147483647]"},
      {output_tensor<std::uint64_t>("y", DataType::kUint64, {1}, {~0ULL}), "[18446744073709551615]"},
      {output_tensor<std::int64_t>("y", DataType::kInt64, {1}, {std::numeric_limits<std::int64_t>::min()}),
       "[-9223372036854775808]"},
      {output_tensor<double>("y", DataType::kFp64, {2}, {0.1, 1e300}), "[0.1,1e+300]"},
  };
  for (const auto& c : cases) {
    std::string out = "[";
    EXPECT_TRUE(append_flat(out, c.output.type, c.output.data.view()));
    EXPECT_EQ(c.data, out + "]");
  }
}

TEST(V2Encode, FloatsReadBackAsTheSameBits) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random.next());
    const auto value = std::bit_cast<float>(bits);
    if (value - value != 0) continue;
    std::string text;
    append_number(text, value);
    float back = 1;
    ASSERT_EQ(Parsed::kOk, parse_number(DataType::kFp32, text, std::as_writable_bytes(std::span(&back, 1))))
        << text;
    ASSERT_EQ(bits, std::bit_cast<std::uint32_t>(back)) << text;
  }
}

TEST(V2Encode, HalfFloatsHaveTheirValues) {
  const struct {
    DataType type;
    std::uint16_t bits;
    double value;
  } cases[] = {{DataType::kFp16, 0x3c00, 1},     {DataType::kFp16, 0xc000, -2},
               {DataType::kFp16, 0x7bff, 65504}, {DataType::kFp16, 0x0001, 0x1p-24},
               {DataType::kFp16, 0x8000, 0},     {DataType::kFp16, 0x3555, 0.333251953125},
               {DataType::kBf16, 0x3f80, 1},     {DataType::kBf16, 0xc2c8, -100}};
  for (const auto& c : cases) {
    EXPECT_EQ(c.value, element_value(c.type, std::as_bytes(std::span(&c.bits, 1)), 0));
  }
}

TEST(V2Metadata, NamesWhatAClientMustSend) {
  auto text_model = testkit::encoder_spec();
  EXPECT_EQ(R"({"name":"encoder","versions":["1"],"platform":"tonnage_stub","inputs":[)"
            R"({"name":"input_ids","datatype":"INT64","shape":[-1,-1]}],"outputs":[)"
            R"({"name":"scores","datatype":"FP32","shape":[-1,2]}]})",
            model_metadata(text_model));
  text_model.tokenizer = model::TokenizerSpec{"wordpiece", "vocab.txt", true};
  text_model.metadata = {{"held_out_accuracy", "0.86"}};
  const std::string text = model_metadata(text_model);
  EXPECT_NE(std::string::npos, text.find(R"("inputs":[{"name":"text","datatype":"BYTES","shape":[-1,1]}])"));
  EXPECT_NE(std::string::npos, text.find(R"("properties":{"held_out_accuracy":"0.86"})"));
}

TEST(V2Metadata, ThatOfTheServerIsJson) {
  simdjson::dom::parser parser;
  const std::string server = server_metadata("tonnage");
  std::string_view name;
  ASSERT_EQ(simdjson::SUCCESS, parser.parse(server)["name"].get(name));
  EXPECT_EQ("tonnage", name);
}

}  // namespace
}  // namespace tonnage::codec::v2
