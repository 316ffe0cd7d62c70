// SPDX-License-Identifier: Apache-2.0
#include "load/workload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "load/tensor_text.h"

namespace tonnage::load {
namespace {

using Json = nlohmann::json;

ModelInfo encoder() {
  return parse_model_info(R"({"name":"e","versions":["1"],"inputs":[
      {"name":"input_ids","datatype":"INT64","shape":[-1,-1]},
      {"name":"attention_mask","datatype":"INT64","shape":[-1,-1]}],
      "outputs":[{"name":"sentence_embedding","datatype":"FP32","shape":[-1,384]}]})")
      .value();
}
ModelInfo reviews() {
  return parse_model_info(R"({"name":"reviews","inputs":[{"name":"text","datatype":"BYTES","shape":[-1]}],
      "outputs":[{"name":"scores","datatype":"FP32","shape":[-1,2]}]})")
      .value();
}
Texts three_texts() {
  return parse_texts(
             "\"a \\\"short\\\" "
             "one\"\n{\"text\":\"medium\",\"tokens\":200}\n\n{\"text\":\"long\",\"tokens\":900}\n",
             "t")
      .value();
}
WorkloadOptions text_options(Format format) {
  WorkloadOptions options;
  options.payload = Payload::kText;
  options.format = format;
  return options;
}
std::string body_of(const std::string& request) { return request.substr(request.find("\r\n\r\n") + 4); }
std::size_t header_number(const std::string& request, const std::string& name) {
  const std::size_t at = request.find("\r\n" + name + ": ");
  return at == std::string::npos ? 0 : std::stoul(request.substr(at + name.size() + 4));
}

TEST(Workload, IsTheSameForTheSameSeed) {
  for (int run = 0; run < 2; ++run) {
    auto one = Workload::make({}, encoder(), {}).value();
    auto two = Workload::make({}, encoder(), {}).value();
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(one.http_request(one.next(), "h", ""), two.http_request(two.next(), "h", ""));
  }
}

TEST(Workload, KeepsTheMix) {
  WorkloadOptions options;
  options.mix = parse_mix("80/15/5").value();
  auto workload = Workload::make(options, encoder(), {}).value();
  std::array<int, kClasses> seen{};
  std::set<std::uint32_t> lengths;
  for (int i = 0; i < 10000; ++i) {
    const Shot shot = workload.next();
    EXPECT_EQ(class_of(shot.tokens), shot.length_class);
    ++seen.at(static_cast<std::size_t>(shot.length_class));
    lengths.insert(shot.tokens);
  }
  EXPECT_NEAR(8000, seen[0], 150);
  EXPECT_NEAR(1500, seen[1], 150);
  EXPECT_NEAR(500, seen[2], 100);
  EXPECT_EQ(8U, *lengths.begin());
  EXPECT_EQ(1024U, *lengths.rbegin());
}

TEST(Workload, SendsBinaryTensorsThatAddUp) {
  auto workload = Workload::make({}, encoder(), {}).value();
  const Shot shot = workload.next();
  const std::string request = workload.http_request(shot, "host:1", "/base");
  EXPECT_TRUE(request.starts_with("POST /base/v2/models/e/infer HTTP/1.1\r\nHost: host:1\r\n"));
  const std::string body = body_of(request);
  EXPECT_EQ(body.size(), header_number(request, "Content-Length"));
  const std::size_t json_length = header_number(request, "Inference-Header-Content-Length");
  const Json json = Json::parse(body.substr(0, json_length));
  EXPECT_EQ((std::vector<std::uint32_t>{1, shot.tokens}), json["inputs"][0]["shape"]);
  std::size_t data = 0;
  for (const Json& input : json["inputs"]) data += input["parameters"]["binary_data_size"].get<std::size_t>();
  EXPECT_EQ(std::size_t{shot.tokens} * 16, data);
  EXPECT_EQ(body.size(), json_length + data);
  EXPECT_EQ('\x01', body[body.size() - 8]);  // the mask is all ones
}

TEST(Workload, SendsTextInEveryDialect) {
  WorkloadOptions options = text_options(Format::kV2Json);
  options.mix = Mix{{1, 0, 0}};
  options.deadline = milliseconds(250);
  auto workload = Workload::make(options, reviews(), three_texts()).value();
  const Json v2 = Json::parse(body_of(workload.http_request(workload.next(), "h", "")));
  EXPECT_EQ("a \"short\" one", v2["inputs"][0]["data"][0]);
  EXPECT_EQ("scores", v2["outputs"][0]["name"]);
  EXPECT_EQ(250000, v2["parameters"]["timeout"]);

  options.format = Format::kSageMakerJson;
  options.rows = 2;
  auto sagemaker = Workload::make(options, reviews(), three_texts()).value();
  const std::string request = sagemaker.http_request(sagemaker.next(), "h", "");
  EXPECT_TRUE(request.starts_with("POST /invocations"));
  EXPECT_EQ(2U, Json::parse(body_of(request))["instances"].size());

  options.format = Format::kSageMakerText;
  auto plain = Workload::make(options, reviews(), three_texts()).value();
  EXPECT_EQ("a \"short\" one", body_of(plain.http_request(plain.next(), "h", "")));
}

TEST(Workload, SendsSageMakersRecordsOneTextEach) {
  WorkloadOptions options = text_options(Format::kSageMakerCsv);
  options.mix = Mix{{1, 0, 0}};
  options.rows = 2;
  auto csv = Workload::make(options, reviews(), three_texts()).value();
  const std::string request = csv.http_request(csv.next(), "h", "");
  EXPECT_NE(std::string::npos, request.find("Content-Type: text/csv\r\n"));
  const std::string cell = "\"a \"\"short\"\" one\"\r\n";
  EXPECT_EQ(cell + cell, body_of(request));

  options.format = Format::kSageMakerJsonLines;
  auto lines = Workload::make(options, reviews(), three_texts()).value();
  const std::string other = lines.http_request(lines.next(), "h", "");
  EXPECT_NE(std::string::npos, other.find("Content-Type: application/jsonlines\r\n"));
  const std::string line = "\"a \\\"short\\\" one\"\n";
  EXPECT_EQ(line + line, body_of(other));
}

TEST(Workload, SendsBinaryTextWithItsLength) {
  WorkloadOptions options = text_options(Format::kV2Binary);
  options.mix = Mix{{0, 1, 0}};
  auto workload = Workload::make(options, reviews(), three_texts()).value();
  const std::string request = workload.http_request(workload.next(), "h", "");
  const std::string data = body_of(request).substr(header_number(request, "Inference-Header-Content-Length"));
  EXPECT_EQ(std::string("\x06\0\0\0medium", 10), data);
}

TEST(Workload, RefusesWhatDoesNotGoTogether) {
  WorkloadOptions text = text_options(Format::kV2Json);
  EXPECT_EQ("bad_workload", Workload::make(text, encoder(), three_texts()).status().reason());
  EXPECT_EQ("bad_workload", Workload::make(text, reviews(), {}).status().reason());
  EXPECT_EQ("bad_workload", Workload::make({}, reviews(), {}).status().reason());
  WorkloadOptions sagemaker;
  sagemaker.format = Format::kSageMakerJson;
  EXPECT_EQ("bad_workload", Workload::make(sagemaker, encoder(), {}).status().reason());
  text.mix = Mix{{0.5, 0.5, 0}};
  Texts only_short;
  only_short.add({"x", 3});
  EXPECT_EQ("bad_workload", Workload::make(text, reviews(), only_short).status().reason());
}

TEST(Mix, RefusesWhatIsNotThreePercentages) {
  for (const char* text : {"", "80/20", "80/15/6", "a/b/c", "80/15/5/", "-5/100/5", "80/15/5x"}) {
    EXPECT_EQ("bad_mix", parse_mix(text).status().reason()) << text;
  }
  EXPECT_DOUBLE_EQ(0.8, parse_mix("80/15/5").value().share[0]);
}

TEST(Texts, NameTheLineThatIsWrong) {
  const Status status = parse_texts("\"ok\"\n{\"txt\":1}\n", "file.jsonl").status();
  EXPECT_EQ("bad_texts", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("file.jsonl:2"));
  EXPECT_EQ("bad_texts", parse_texts("\n", "empty").status().reason());
  EXPECT_EQ("bad_texts", read_texts("/no/such/file").status().reason());
}

TEST(Texts, EstimateTokensWhereNoneAreGiven) {
  EXPECT_EQ(2U, estimate_tokens(""));
  EXPECT_EQ(15U, estimate_tokens("one two three four five six seven eight nine ten"));
}

TEST(Tensor, FillsEveryTypeInsideItsRange) {
  Random random(1);
  const InputInfo floats{"x", "FP32", 4, {-1, 3}};
  const Json values = Json::parse(make_tensor(floats, {2, 9, 100}, random).json());
  EXPECT_EQ(6U, values.size());
  for (const double value : values) EXPECT_TRUE(value >= 0 && value < 1);
  const InputInfo bytes{"x", "INT8", 1, {-1, -1}};
  const TensorText tensor = make_tensor(bytes, {1, 500, 30522}, random);
  EXPECT_EQ("[1,500]", tensor.shape);
  for (const int value : Json::parse(tensor.json())) EXPECT_LT(value, 127);
}

TEST(ModelInfo, RefusesMetadataThatIsNot) {
  for (const char* text : {"", "[]", "{}", R"({"name":"x","inputs":[]})", R"({"name":"x","inputs":[{}]})",
                           R"({"name":"x","inputs":[{"name":"a","datatype":"FP7","shape":[1]}]})",
                           R"({"name":"x","inputs":[{"name":"a","datatype":"FP32","shape":["1"]}]})"}) {
    EXPECT_EQ("bad_metadata", parse_model_info(text).status().reason()) << text;
  }
  EXPECT_EQ("bad_metadata", parse_model_names("{}").status().reason());
}

}  // namespace
}  // namespace tonnage::load
