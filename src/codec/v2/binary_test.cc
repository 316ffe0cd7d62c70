// SPDX-License-Identifier: Apache-2.0
// The binary tensor extension: JSON first, raw tensors behind it.
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

std::string raw(const std::vector<float>& values) {
  return std::string(as_text(std::as_bytes(std::span(values))));
}
std::string raw(const std::vector<std::string>& texts) {
  std::vector<std::byte> bytes;
  for (const std::string& text : texts) tensor::append_string(bytes, text);
  return std::string(as_text(bytes));
}

model::ModelSpec two_inputs() {
  return testkit::model_spec(
      "two", {tensor_spec("a", DataType::kFp32, {-1, 2}), tensor_spec("b", DataType::kBytes, {-1, 1})},
      {tensor_spec("y", DataType::kFp32, {-1, 2})});
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  std::size_t size) {
  return R"({"name":")" + name + R"(","datatype":")" + type + R"(","shape":)" + shape +
         R"(,"parameters":{"binary_data_size":)" + std::to_string(size) + "}}";
}

Result<Decoded> decode(const model::ModelSpec& spec, const std::string& entries, const std::string& tail) {
  const std::string json = R"({"inputs":[)" + entries + "]}";
  std::string body = json + tail;
  body.reserve(body.size() + 64);
  return decode_infer(spec, body, json.size());
}

TEST(V2Binary, TensorsFollowInTheOrderOfTheList) {
  const std::string strings = raw(std::vector<std::string>{"one", "three"});
  const std::string floats = raw(std::vector<float>{1, 2, 3, 4});
  const auto decoded =
      decode(two_inputs(),
             entry("b", "BYTES", "[2,1]", strings.size()) + "," + entry("a", "FP32", "[2,2]", floats.size()),
             strings + floats);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  const auto& inputs = decoded.value().request.inputs;
  EXPECT_EQ((std::vector<float>{1, 2, 3, 4}), values_of<float>(inputs[0]->data.view()));
  EXPECT_EQ((std::vector<std::string>{"one"}), strings_of(inputs[1]->row(0)));
  EXPECT_EQ((std::vector<std::string>{"three"}), strings_of(inputs[1]->row(1)));
}

TEST(V2Binary, JsonAndBinaryInputsMayBeMixed) {
  const std::string floats = raw(std::vector<float>{1, 2});
  const auto decoded = decode(
      two_inputs(),
      R"({"name":"b","datatype":"BYTES","shape":[1,1],"data":["x"]},)" + entry("a", "FP32", "[1,2]", 8),
      floats);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
}

TEST(V2Binary, RefusesSizesThatDoNotFit) {
  const auto spec = testkit::model_spec("one", {tensor_spec("a", DataType::kFp32, {-1, 2})}, {});
  const std::string floats = raw(std::vector<float>{1, 2});
  const struct {
    std::string entries;
    std::string tail;
    const char* reason;
  } cases[] = {
      {entry("a", "FP32", "[1,2]", 8), floats.substr(0, 7), "too_few_bytes"},
      {entry("a", "FP32", "[1,2]", 8), floats + "x", "leftover_bytes"},
      {entry("a", "FP32", "[1,2]", 7), floats.substr(0, 7), "element_count"},
      {entry("a", "FP32", "[2,2]", 8), floats, "element_count"},
      {entry("a", "FP32", "[1,2]", ~0ULL), floats, "too_few_bytes"},
      {R"({"name":"a","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":-8}})", floats,
       "bad_parameter"},
      {R"({"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2],"parameters":{"binary_data_size":8}})",
       floats, "two_sources"},
      {R"({"parameters":{"binary_data_size":8},"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2]})",
       floats, "two_sources"},
      {R"({"name":"a","datatype":"FP32","shape":[1,2],"data":[1,2]})", floats, "leftover_bytes"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(c.reason, decode(spec, c.entries, c.tail).status().reason()) << c.entries;
}

TEST(V2Binary, StringsFillTheirBytesExactly) {
  const auto spec = testkit::model_spec("s", {tensor_spec("b", DataType::kBytes, {-1})}, {});
  const std::string two = raw(std::vector<std::string>{"ab", "c"});
  EXPECT_TRUE(decode(spec, entry("b", "BYTES", "[2]", two.size()), two).is_ok());
  EXPECT_EQ("element_count", decode(spec, entry("b", "BYTES", "[1]", two.size()), two).status().reason());
  EXPECT_EQ("element_count", decode(spec, entry("b", "BYTES", "[3]", two.size()), two).status().reason());
  EXPECT_EQ("element_count", decode(spec, entry("b", "BYTES", "[59]", two.size()), two).status().reason());
  const std::string lying =
      "\xff\xff\xff\xff"
      "abc";
  EXPECT_EQ("element_count", decode(spec, entry("b", "BYTES", "[1]", lying.size()), lying).status().reason());
}

TEST(V2Binary, ABoolIsZeroOrOne) {
  const auto spec = testkit::model_spec("m", {tensor_spec("b", DataType::kBool, {-1, 2})}, {});
  EXPECT_TRUE(decode(spec, entry("b", "BOOL", "[1,2]", 2), std::string("\0\1", 2)).is_ok());
  EXPECT_EQ("bad_value",
            decode(spec, entry("b", "BOOL", "[1,2]", 2), std::string("\0\2", 2)).status().reason());
}

TEST(V2Binary, TheHeaderIsANumberWithinTheBody) {
  EXPECT_EQ(17U, parse_json_length("17", 20).value().value());
  EXPECT_EQ(20U, parse_json_length("20", 20).value().value());
  EXPECT_EQ(0U, parse_json_length("0", 20).value().value());
  for (const char* header :
       {"21", "99999999999", "99999999999999999999999999", "-1", "abc", "", " 1", "1 ", "+1", "1e1", "0x1"}) {
    EXPECT_EQ("json_length", parse_json_length(header, 20).status().reason()) << header;
  }
}

TEST(V2Binary, AHeaderOfTheWholeLengthIsOrdinaryJson) {
  std::string body = R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})";
  const auto spec = testkit::model_spec("m", {tensor_spec("x", DataType::kFp32, {-1, 2})}, {});
  const std::size_t size = body.size();
  EXPECT_TRUE(decode_infer(spec, body, size).is_ok());
  EXPECT_FALSE(decode_infer(spec, body, size - 1).is_ok());
}

TEST(V2Raw, TheBodyIsTheOnlyInputAndTheAnswerIsBinary) {
  std::string body = raw(std::vector<float>{1, 2, 3, 4});
  const auto spec = testkit::model_spec("m", {tensor_spec("x", DataType::kFp32, {-1, 2})}, {});
  const auto decoded = decode_infer(spec, body, 0);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(2U, decoded.value().request.rows);
  EXPECT_TRUE(decoded.value().format.binary_by_default);
}

TEST(V2Raw, AFreeDimTakesTheLengthOfOneRow) {
  std::string body(24, '\0');
  const auto decoded = decode_infer(testkit::encoder_spec(), body, 0);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(1U, decoded.value().request.rows);
  EXPECT_EQ(3U, decoded.value().request.length);
}

TEST(V2Raw, RefusesWhatHasNoShape) {
  std::string odd(7, 'x');
  std::string empty;
  const auto one = testkit::model_spec("m", {tensor_spec("x", DataType::kFp32, {-1, 2})}, {});
  EXPECT_EQ("bad_shape", decode_infer(one, odd, 0).status().reason());
  EXPECT_EQ("no_rows", decode_infer(one, empty, 0).status().reason());
  EXPECT_EQ("raw_request", decode_infer(two_inputs(), odd, 0).status().reason());
}

TEST(V2Raw, TextAndStringsAreOneElement) {
  auto text_model = testkit::encoder_spec();
  text_model.tokenizer = model::TokenizerSpec{"wordpiece", "vocab.txt", true};
  std::string body = "good film";
  EXPECT_EQ((std::vector<std::string>{"good film"}), decode_infer(text_model, body, 0).value().texts);
  const auto bytes_model = testkit::model_spec("m", {tensor_spec("x", DataType::kBytes, {-1, 1})}, {});
  const auto decoded = decode_infer(bytes_model, body, 0);
  EXPECT_EQ((std::vector<std::string>{"good film"}), strings_of(decoded.value().request.inputs[0]->row(0)));
}

}  // namespace
}  // namespace tonnage::codec::v2
