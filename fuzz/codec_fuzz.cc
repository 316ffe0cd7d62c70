// SPDX-License-Identifier: Apache-2.0
// The first byte of an input says what the HTTP head would say; the rest is the body.
#include <array>
#include <optional>

#include "base/bug.h"
#include "codec/sagemaker/sagemaker.h"
#include "codec/v2/v2.h"
#include "fuzz/target.h"
#include "tensor/strings.h"
#include "testkit/model_specs.h"

namespace tonnage::fuzz {
namespace {

using tensor::DataType;
using testkit::tensor_spec;

model::ModelSpec ids_spec(bool takes_text) {
  auto ids = tensor_spec("ids", DataType::kInt64, {-1, -1});
  ids.range = model::ValueRange{0, 99};
  auto spec = testkit::model_spec("ids", {ids}, {tensor_spec("y", DataType::kFp32, {-1, 2})});
  spec.max_length = 16;
  if (takes_text) spec.tokenizer = model::TokenizerSpec{"wordpiece", "vocab.txt", true};
  return spec;
}

model::ModelSpec mixed_spec() {
  auto spec = ids_spec(false);
  for (const DataType type :
       {DataType::kFp32, DataType::kFp64, DataType::kFp16, DataType::kUint8, DataType::kBool}) {
    spec.inputs.push_back(tensor_spec("x" + std::to_string(spec.inputs.size()), type, {-1, 2}));
  }
  spec.inputs.push_back(tensor_spec("words", DataType::kBytes, {-1, -1}));
  return spec;
}

// Promise 1 of request/request.h, seen from outside.
void check_sound(const model::ModelSpec& spec, const codec::Decoded& decoded) {
  const request::Request& request = decoded.request;
  TONNAGE_CHECK(request.rows >= 1 && request.rows <= spec.max_rows_per_request, "rows out of bounds");
  if (!decoded.texts.empty()) {
    TONNAGE_CHECK(request.rows == decoded.texts.size(), "rows and texts differ");
    return;
  }
  TONNAGE_CHECK(request.inputs.size() == spec.inputs.size(), "an input is missing");
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!request.inputs[i]) continue;
    std::size_t total = 0;
    for (std::uint32_t row = 0; row < request.rows; ++row) {
      const ByteView bytes = request.inputs[i]->row(row);
      total += bytes.size();
      TONNAGE_CHECK(request.row_length(row) <= spec.max_length, "a row is too long");
      const Bytes expected = spec.input_row_bytes(i, request.row_length(row));
      const bool fits = spec.inputs[i].type == DataType::kBytes
                            ? bytes.size() == tensor::strings_size(bytes, expected.count() / 4)
                            : Bytes(bytes.size()) == expected;
      TONNAGE_CHECK(fits, "a row has not the bytes that the spec says");
    }
    TONNAGE_CHECK(total == request.inputs[i]->data.size(), "rows and tensor differ");
  }
}

constexpr std::array<std::string_view, 4> kTypes = {"application/json", "application/jsonlines", "text/csv",
                                                    "text/plain"};

// No spare capacity, so that the sanitizer sees a read behind the end.
std::string body_behind(ByteView input, std::size_t head) {
  std::string body(as_text(input.subspan(head)));
  body.shrink_to_fit();
  return body;
}

}  // namespace

// First byte: 0: all of the body is JSON; n: the JSON ends n × 4 bytes before the end.
void run_v2(ByteView input) {
  if (input.empty()) return;
  static const std::array specs = {mixed_spec(), ids_spec(true), ids_spec(false)};
  const auto head = std::to_integer<std::size_t>(input[0]);
  std::string body = body_behind(input, 1);
  std::optional<std::size_t> json_length;
  if (head > 0) json_length = body.size() - std::min(body.size(), head * 4);
  for (const model::ModelSpec& spec : specs) {
    const auto decoded = codec::v2::decode_infer(spec, body, json_length);
    if (decoded.is_ok()) check_sound(spec, *decoded);
  }
}

std::vector<std::string> v2_seeds() {
  const std::string json =
      R"({"id":"a1","parameters":{"timeout":5000,"priority":1,"binary_data_output":false},"inputs":[)"
      R"({"name":"ids","shape":[2,3],"datatype":"INT64","data":[[1,2,3],[4,5,6]]},)"
      R"({"name":"x1","shape":[2,2],"datatype":"FP32","data":[1.5,-2e3,0.25,7]},)"
      R"({"name":"x2","shape":[2,2],"datatype":"FP64","data":[1.5,-2e3,0.25,7]},)"
      R"({"name":"x3","shape":[2,2],"datatype":"FP16","data":[1,2,3,4]},)"
      R"({"name":"x4","shape":[2,2],"datatype":"UINT8","data":[1,2,3,255]},)"
      R"({"name":"x5","shape":[2,2],"datatype":"BOOL","data":[true,false,true,false]},)"
      R"({"name":"words","shape":[2,3],"datatype":"BYTES","data":["a","b\u00e9","","d","e","f"]}],)"
      R"("outputs":[{"name":"y","parameters":{"classification":1,"binary_data":true}}]})";
  const std::string text =
      R"({"inputs":[{"name":"text","shape":[2],"datatype":"BYTES","data":["one","zwei"]}]})";
  const std::string binary =
      R"({"inputs":[{"name":"ids","shape":[1,3],"datatype":"INT64","parameters":{"binary_data_size":24}}]})";
  return {std::string(1, '\0') + json, std::string(1, '\0') + text, "\x06" + binary + std::string(24, '\1')};
}

// First byte: media type of the body, of the reply, and which model.
void run_sagemaker(ByteView input) {
  if (input.empty()) return;
  static const std::array specs = {ids_spec(false), ids_spec(true)};
  const auto head = std::to_integer<std::size_t>(input[0]);
  const model::ModelSpec& spec = specs.at(head / 16 % 2);
  std::string body = body_behind(input, 1);
  const auto decoded =
      codec::sagemaker::decode_invocation(spec, body, kTypes.at(head % 4), kTypes.at(head / 4 % 4));
  if (decoded.is_ok()) check_sound(spec, *decoded);
}

std::vector<std::string> sagemaker_seeds() {
  const auto with = [](int type, int model, std::string_view body) {
    return static_cast<char>(type + model * 16) + std::string(body);
  };
  return {with(0, 0, R"({"instances":[[1,2,3],[4,5],[6]],"other":null})"),
          with(0, 1, R"({"instances":["one","two \u00e9",{"text":"three"}]})"),
          with(0, 0, R"({"inputs":[{"name":"ids","shape":[1,2],"datatype":"INT64","data":[1,2]}]})"),
          with(1, 0, "[1,2,3]\n{\"ids\":[4,5]}\n[6]\n"),
          with(2, 0, "1,2,3\r\n\"4\",5\n6\n"),
          with(2, 1, "a text, plain\r\n\"quoted, \"\"so\"\"\"\n"),
          with(3, 1, "only one text")};
}

}  // namespace tonnage::fuzz
