// SPDX-License-Identifier: Apache-2.0
// 100,000 seeded mutations of good bodies: each is refused with a Status or is a request that keeps its
// promises. Bodies have no spare capacity, so that the address sanitizer sees a read behind the end.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "codec/sagemaker/sagemaker.h"
#include "codec/v2/v2.h"
#include "testkit/model_specs.h"
#include "testkit/requests.h"

namespace tonnage::codec {
namespace {

using tensor::DataType;
using testkit::tensor_spec;

model::ModelSpec mixed_spec() {
  auto ids = tensor_spec("ids", DataType::kInt64, {-1, -1});
  ids.range = model::ValueRange{0, 99};
  auto spec = testkit::model_spec(
      "mixed",
      {ids, tensor_spec("x", DataType::kFp32, {-1, 2}), tensor_spec("flags", DataType::kBool, {-1, 1}),
       tensor_spec("words", DataType::kBytes, {-1, -1})},
      {tensor_spec("y", DataType::kFp32, {-1, 2})});
  spec.max_length = 4;
  spec.too_long = model::TooLong::kTruncate;
  return spec;
}

const std::string kJsonBody =
    R"({"id":"a1","parameters":{"timeout":5000,"priority":1,"binary_data_output":false},"inputs":[)"
    R"({"name":"ids","shape":[2,3],"datatype":"INT64","data":[[1,2,3],[4,5,6]]},)"
    R"({"data":[1.5,-2e3,0.25,7],"name":"x","shape":[2,2],"datatype":"FP32"},)"
    R"({"name":"flags","shape":[2,1],"datatype":"BOOL","data":[true,false]},)"
    R"({"name":"words","shape":[2,3],"datatype":"BYTES","data":["a","b\u00e9","","d","e","f"]}],)"
    R"("outputs":[{"name":"y","parameters":{"classification":1}}]})";

std::string binary_head() {
  return R"({"inputs":[{"name":"ids","shape":[1,2],"datatype":"INT64","parameters":{"binary_data_size":16}},)"
         R"({"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]},)"
         R"({"name":"flags","shape":[1,1],"datatype":"BOOL","parameters":{"binary_data_size":1}},)"
         R"({"name":"words","shape":[1,2],"datatype":"BYTES","parameters":{"binary_data_size":11}}]})";
}
const std::string kBinaryTail("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\1\0\0\0a\2\0\0\0bc", 28);

void mutate(std::string& text, Random& random) {
  static constexpr char kBytes[] = "{}[]:,\"\\-.0123456789eE+tfnu \r\n\0\1\xff\xc3";
  static constexpr std::string_view kAlphabet(kBytes, sizeof kBytes - 1);
  for (std::uint64_t edit = 0, edits = 1 + random.below(4); edit < edits && !text.empty(); ++edit) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = 1 + random.below(8);
    switch (random.below(6)) {
      case 0: text[at] = kAlphabet[random.below(kAlphabet.size())]; break;
      case 1: text.insert(at, 1, kAlphabet[random.below(kAlphabet.size())]); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(random.below(text.size()), length * 4)); break;
      case 4: text.resize(at); break;
      default: text[at] = static_cast<char>(random.next()); break;
    }
  }
  text.shrink_to_fit();
}

// Promise 1 of request.h, seen from outside.
void expect_sound(const model::ModelSpec& spec, const Decoded& decoded) {
  const request::Request& request = decoded.request;
  ASSERT_GE(request.rows, 1U);
  ASSERT_LE(request.rows, spec.max_rows_per_request);
  if (!decoded.texts.empty()) {
    ASSERT_EQ(request.rows, decoded.texts.size());
    return;
  }
  ASSERT_EQ(spec.inputs.size(), request.inputs.size());
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!request.inputs[i]) {
      ASSERT_EQ(model::InputSource::kMask, spec.inputs[i].source);
      continue;
    }
    std::size_t total = 0;
    for (std::uint32_t row = 0; row < request.rows; ++row) {
      const ByteView bytes = request.inputs[i]->row(row);
      total += bytes.size();
      ASSERT_LE(request.row_length(row), spec.max_length);
      if (spec.inputs[i].type == DataType::kBytes) {
        const Bytes least = spec.input_row_bytes(i, request.row_length(row));  // the prefixes alone
        ASSERT_EQ(bytes.size(), tensor::strings_size(bytes, least.count() / 4));
      } else {
        ASSERT_EQ(spec.input_row_bytes(i, request.row_length(row)), Bytes(bytes.size()));
      }
    }
    ASSERT_EQ(request.inputs[i]->data.size(), total);
  }
}

TEST(Mutations, OfV2RequestsAreRefusedOrSound) {
  const model::ModelSpec spec = mixed_spec();
  Random random(1);
  int accepted = 0;
  for (int round = 0; round < 35'000; ++round) {
    std::string body = kJsonBody;
    mutate(body, random);
    const auto decoded = v2::decode_infer(spec, body, std::nullopt);
    if (!decoded.is_ok()) continue;
    ++accepted;
    ASSERT_NO_FATAL_FAILURE(expect_sound(spec, decoded.value())) << body;
  }
  EXPECT_GT(accepted, 500);
}

TEST(Mutations, OfBinaryRequestsAreRefusedOrSound) {
  const model::ModelSpec spec = mixed_spec();
  Random random(2);
  int accepted = 0;
  for (int round = 0; round < 35'000; ++round) {
    std::string head = binary_head();
    std::string tail = kBinaryTail;
    if (random.below(2) == 0) mutate(head, random);
    if (random.below(2) == 0) mutate(tail, random);
    std::size_t json_length = head.size();
    if (random.below(8) == 0) json_length = random.below(head.size() + tail.size() + 1);
    std::string body = head + tail;
    body.shrink_to_fit();
    const auto decoded = v2::decode_infer(spec, body, json_length);
    if (!decoded.is_ok()) continue;
    ++accepted;
    ASSERT_NO_FATAL_FAILURE(expect_sound(spec, decoded.value())) << body;
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(Mutations, OfSageMakerBodiesAreRefusedOrSound) {
  const struct {
    const char* type;
    std::string body;
  } seeds[] = {{"application/json", R"({"instances":[[1,2,3],[4,5],[6]],"other":null})"},
               {"application/json", R"({"instances":["one","two \u00e9",{"text":"three"}]})"},
               {"application/jsonlines", "[1,2,3]\n{\"ids\":[4,5]}\n[6]\n"},
               {"text/csv", "1,2,3\r\n\"4\",5\n6\n"},
               {"text/csv", "a text, plain\r\n\"quoted, \"\"so\"\"\"\n"},
               {"text/plain", "only one text"}};
  auto numbers = testkit::model_spec("numbers", {mixed_spec().inputs[0]}, {});
  numbers.max_length = 4;
  auto texts = numbers;
  texts.tokenizer = model::TokenizerSpec{"wordpiece", "vocab.txt", true};
  Random random(3);
  int accepted = 0;
  for (int round = 0; round < 35'000; ++round) {
    const auto& seed = seeds[random.below(std::size(seeds))];
    const model::ModelSpec& spec = random.below(2) == 0 ? numbers : texts;
    std::string body = seed.body;
    mutate(body, random);
    const auto decoded = sagemaker::decode_invocation(spec, body, seed.type, "");
    if (!decoded.is_ok()) continue;
    ++accepted;
    ASSERT_NO_FATAL_FAILURE(expect_sound(spec, decoded.value())) << body;
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(Mutations, OfMediaTypesNeverCrash) {
  Random random(4);
  std::string body = "1,2\n";
  const model::ModelSpec spec = testkit::model_spec("m", {tensor_spec("x", DataType::kFp32, {-1, 2})}, {});
  for (int round = 0; round < 10'000; ++round) {
    std::string type = "text/csv; charset=utf-8";
    std::string accept = "text/html, application/json;q=0.9, */*;q=0.1";
    mutate(type, random);
    mutate(accept, random);
    const Status status = sagemaker::decode_invocation(spec, body, type, accept).status();
    ASSERT_TRUE(status.is_ok() || status.code() != Code::kInternal);
  }
}

}  // namespace
}  // namespace tonnage::codec
