// SPDX-License-Identifier: Apache-2.0
#include "wire/load_doc.h"

#include <gtest/gtest.h>

namespace tonnage::wire {
namespace {

LoadDoc example() {
  return {.model = "reviews",
          .version = "3",
          .route = "script",
          .path = "/models/reviews/3/model.pt",
          .threads = 2,
          .load_limit = mib(200),
          .inputs = {{"ids", tensor::DataType::kInt64, {-1, -1}, ValueRange{0, 30521}}},
          .outputs = {{"scores", tensor::DataType::kFp32, {-1, 2}}},
          .options = {{"precision", "fp32"}, {"odd \"key\"", "a\nb"}}};
}

std::string_view reason_of(std::string_view json) { return parse_load_doc(json).status().reason(); }

TEST(LoadDoc, ComesBackAsItWasWritten) {
  const std::string json = to_json(example());
  const auto back = parse_load_doc(json);
  ASSERT_TRUE(back.is_ok()) << back.status().detail();
  EXPECT_EQ(json, to_json(*back));
  EXPECT_EQ("/models/reviews/3/model.pt", back->path);
  EXPECT_EQ(2U, back->threads);
  EXPECT_EQ(mib(200), back->load_limit);
  EXPECT_EQ((std::vector<std::int64_t>{-1, -1}), back->inputs.at(0).dims);
  EXPECT_EQ(30521, back->inputs.at(0).range->max);
  EXPECT_FALSE(back->outputs.at(0).range.has_value());
  EXPECT_EQ("a\nb", back->options.at("odd \"key\""));
}

TEST(LoadedDoc, ComesBackAsItWasWritten) {
  const LoadedDoc doc{.runtime = "stub",
                      .inputs = {{"x", tensor::DataType::kUint8, {-1, 4}}},
                      .outputs = {},
                      .facts = {{"isa", "avx2"}}};
  const auto back = parse_loaded_doc(to_json(doc));
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(to_json(doc), to_json(*back));
}

TEST(LoadDoc, TakesWhatANewerPeerAddsAndWhatAnOlderOneOmits) {
  EXPECT_TRUE(parse_load_doc(R"({"model":"m","colour":"blue"})").is_ok());
  EXPECT_EQ(1U, parse_load_doc("{}")->threads);
}

TEST(LoadDoc, RefusesWhatIsNotOne) {
  for (const char* json :
       {"", "[]", "{", R"({"model":1})", R"({"threads":0})", R"({"threads":-1})", R"({"threads":1.5})",
        R"({"threads":100000})", R"({"load_limit":"8"})", R"({"options":{"a":1}})", R"({"inputs":{}})"}) {
    EXPECT_EQ("bad_load_doc", reason_of(json)) << json;
  }
}

TEST(LoadDoc, RefusesTensorsThatCannotBe) {
  const auto with_tensor = [](std::string_view tensor) {
    return std::string(R"({"inputs":[)").append(tensor).append("]}");
  };
  EXPECT_EQ("ok", reason_of(with_tensor(R"({"name":"x","datatype":"FP32","shape":[-1,0]})")));
  for (const char* tensor :
       {"1", R"({"name":"","datatype":"FP32","shape":[]})", R"({"name":"x","datatype":"FP31","shape":[]})",
        R"({"name":"x","datatype":"FP32"})", R"({"name":"x","datatype":"FP32","shape":[-2]})",
        R"({"name":"x","datatype":"FP32","shape":[1.0]})", R"({"name":"x","datatype":"FP32","shape":[1e40]})",
        R"({"name":"x","datatype":"FP32","shape":[18446744073709551615]})",
        R"({"name":"x","datatype":"FP32","shape":[1,1,1,1,1,1,1,1,1]})",
        R"({"name":"x","datatype":"FP32","shape":[1]},{"name":"x","datatype":"FP32","shape":[1]})"}) {
    EXPECT_EQ("bad_load_doc", reason_of(with_tensor(tensor))) << tensor;
  }
}

TEST(LoadDoc, SurvivesAHundredThousandBrackets) {
  EXPECT_EQ("bad_load_doc", reason_of(std::string(100'000, '[')));
  EXPECT_EQ("bad_load_doc",
            reason_of(R"({"inputs":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}"));
}

TEST(LoadDoc, ReplacesTextThatIsNotUtf8) {
  auto doc = example();
  doc.path = "/models/\xff";
  EXPECT_EQ("/models/\xef\xbf\xbd", parse_load_doc(to_json(doc))->path);
}

}  // namespace
}  // namespace tonnage::wire
