// SPDX-License-Identifier: Apache-2.0
#include "kit/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "testkit/example_messages.h"

namespace tonnage::kit {
namespace {

using tensor::DataType;

// Two rows, of lengths 2 and 1: ids → sums [B] as [B, 2] and as one value [B, 1].
constexpr const char* kRows = R"({
  "inputs": [{"name": "ids", "datatype": "INT64", "dims": [-1, -1], "pad": 7}],
  "outputs": [{"name": "scores", "datatype": "FP32", "dims": [-1, 2]},
              {"name": "sum", "datatype": "FP32", "dims": [-1, 1]},
              {"name": "states", "datatype": "FP32", "dims": [-1, -1]}],
  "rows": [{"length": 2, "inputs": {"ids": [3, 4]}, "outputs": {"scores": [3, 4], "sum": [3], "states": [3, 4]}},
           {"length": 1, "inputs": {"ids": [5]}, "outputs": {"scores": [5, 0], "sum": [5], "states": [5]}}]})";

// Answers as the rows say: the ids themselves, cut and padded with zero; `change` spoils a value.
class Echo final : public Runtime {
 public:
  std::function<float(float)> change = [](float value) { return value; };
  std::vector<std::string> seen;
  int released = 0;

  Result<Loaded> load(const wire::LoadDoc&) override { return Loaded{}; }
  RunResult run(const RunView& view) override {
    const auto ids = as_elements<std::int64_t>(view.inputs[0].data);
    std::string& text = seen.emplace_back();
    for (const std::int64_t id : ids) text += std::to_string(id);
    std::vector<std::vector<float>>& values = storage_.emplace_back(3, std::vector<float>());
    for (std::uint32_t row = 0; row < view.rows; ++row) {
      const auto own = ids.subspan(row * view.length, view.length);
      const auto at = [&](std::size_t i) {
        return i < own.size() && own[i] != 7 ? static_cast<float>(own[i]) : 0;
      };
      values[0].insert(values[0].end(), {change(at(0)), at(1)});
      values[1].push_back(change(at(0)));
      for (std::size_t i = 0; i < own.size(); ++i) values[2].push_back(at(i));
    }
    RunOutputs out;
    const auto rows = std::int64_t{view.rows};
    for (const auto& [index, width] : {std::pair{0U, std::int64_t{2}}, std::pair{1U, std::int64_t{1}},
                                       std::pair{2U, std::int64_t{view.length}}}) {
      out.outputs.push_back(
          {DataType::kFp32, testkit::shape_of({rows, width}), std::as_bytes(std::span(values[index]))});
    }
    return out;
  }
  void release_outputs() override { ++released; }
  void trim() override {}
  Bytes live() const override { return {}; }

 private:
  std::vector<std::vector<std::vector<float>>> storage_;
};

Status proven(Echo& runtime, double min_cosine = kParityMinCosine) {
  const HeldOut rows = parse_held_out(kRows).value();
  return prove_parity(runtime, rows, {.min_cosine = min_cosine}).status();
}

TEST(Parity, RunsEveryRowAloneAndThenTogetherPaddedWithItsPadValue) {
  Echo runtime;
  EXPECT_TRUE(proven(runtime).is_ok());
  EXPECT_EQ((std::vector<std::string>{"34", "5", "5734"}), runtime.seen) << "the batch goes by length";
  EXPECT_EQ(3, runtime.released);
}

TEST(Parity, TellsTheLeastCosineAndTheLargestDifference) {
  Echo runtime;
  runtime.change = [](float value) { return value == 3 ? 3.5F : value; };
  const auto seen = measure_parity(runtime, parse_held_out(kRows).value(), Bytes::max());
  ASSERT_TRUE(seen.is_ok()) << seen.status().to_string();
  EXPECT_DOUBLE_EQ(0.5, seen->max_difference);
  EXPECT_NEAR((3.5 * 3 + 16) / (5 * std::sqrt(3.5 * 3.5 + 16)), seen->min_cosine, 1e-6);
  EXPECT_EQ("output 'scores' of row 0 (length 2), alone", seen->worst_at);
}

TEST(Parity, RefusesAnotherDirectionWithWhatWasMeasuredAndWhere) {
  Echo runtime;
  runtime.change = [](float value) { return value == 3 ? -3 : value; };
  const Status status = proven(runtime);
  EXPECT_EQ("parity", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("output 'scores' of row 0 (length 2), alone"))
      << status.detail();
  EXPECT_NE(std::string::npos, status.detail().find("allowed from 0.999 on")) << status.detail();
  EXPECT_TRUE(proven(runtime, -1).is_ok()) << "the rule decides";
}

TEST(Parity, ARowWithAValueOutsideItsRangeReachesNoRuntime) {
  const auto prove_within = [](Echo& runtime, wire::ValueRange range) {
    HeldOut rows = parse_held_out(kRows).value();
    const std::vector<wire::TensorDoc> inputs = {{"ids", DataType::kInt64, {-1, -1}, range}};
    EXPECT_TRUE(put_in_order(rows, inputs, {}).is_ok());
    return prove_parity(runtime, rows, {.min_cosine = -1}).status();
  };
  Echo runtime;
  EXPECT_TRUE(prove_within(runtime, {3, 7}).is_ok());
  runtime.seen.clear();
  const Status status = prove_within(runtime, {4, 7});  // the first row has a 3
  EXPECT_EQ("parity", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("ids is outside [4, 7]")) << status.detail();
  EXPECT_TRUE(runtime.seen.empty());
  EXPECT_EQ("parity", prove_within(runtime, {3, 6}).reason()) << "the padding is a value too";
}

TEST(Parity, ANumberThatIsNoneNeverPasses) {
  Echo runtime;
  runtime.change = [](float) { return std::numeric_limits<float>::quiet_NaN(); };
  EXPECT_EQ("parity", proven(runtime, -1).reason());
}

TEST(Parity, ANumberThatIsNoneIsTheLargestDifferenceWhateverComesAfterIt) {
  Echo runtime;
  runtime.change = [](float value) { return value == 3 ? std::numeric_limits<float>::quiet_NaN() : value; };
  const auto seen = measure_parity(runtime, parse_held_out(kRows).value(), Bytes::max());
  ASSERT_TRUE(seen.is_ok()) << seen.status().to_string();
  EXPECT_TRUE(std::isnan(seen->max_difference));
  EXPECT_TRUE(std::isnan(seen->min_cosine));
}

TEST(Parity, OneValuePerRowIsJudgedOverAllRows) {
  EXPECT_DOUBLE_EQ(1, cosine(std::vector{2.0F, 4.0F}, std::vector{1.0F, 2.0F}));
  EXPECT_LT(cosine(std::vector{5.0F, 3.0F}, std::vector{3.0F, 5.0F}), 0.9);
  EXPECT_EQ(1, cosine(std::vector{0.0F}, std::vector{0.0F}));
  EXPECT_EQ(0, cosine(std::vector{1.0F}, std::vector{0.0F}));
}

TEST(Parity, ARuntimeThatCannotRunARowFailsWithTheRow) {
  class Refuses final : public Runtime {
   public:
    Result<Loaded> load(const wire::LoadDoc&) override { return Loaded{}; }
    RunResult run(const RunView&) override { return RunError{.text = "index out of range"}; }
    void release_outputs() override {}
    void trim() override {}
    Bytes live() const override { return {}; }
  } runtime;
  const auto seen = measure_parity(runtime, parse_held_out(kRows).value(), Bytes::max());
  EXPECT_EQ("parity", seen.status().reason());
  EXPECT_NE(std::string::npos,
            seen.status().detail().find("row 0 (length 2), alone, cannot be run: index out"))
      << seen.status().detail();
}

TEST(ParityRule, ComesFromTheLoadDocument) {
  EXPECT_DOUBLE_EQ(kParityMinCosine, parity_rule({}, {})->min_cosine);
  const auto rule = parity_rule({.load_limit = mib(10), .options = {{"parity_min_cosine", "0.95"}}}, mib(4));
  ASSERT_TRUE(rule.is_ok());
  EXPECT_DOUBLE_EQ(0.95, rule->min_cosine);
  EXPECT_EQ(mib(6), rule->grant);
  for (const char* text : {"", "x", "0.9x", "2", "nan"})
    EXPECT_EQ("bad_load_doc", parity_rule({.options = {{"parity_min_cosine", text}}}, {}).status().reason())
        << text;
}

TEST(HeldOut, ComesInTheOrderOfTheModelsTensors) {
  HeldOut rows = parse_held_out(kRows).value();
  const std::vector<wire::TensorDoc> outputs = {{"sum", DataType::kFp32, {-1, 1}},
                                                {"scores", DataType::kFp32, {-1, 2}}};
  ASSERT_TRUE(put_in_order(rows, {}, outputs).is_ok());
  EXPECT_EQ("sum", rows.outputs.at(0).name);
  EXPECT_EQ((std::vector<float>{3, 4}), rows.rows.at(0).outputs.at(1));
  const std::vector<wire::TensorDoc> other = {{"logits", DataType::kFp32, {-1, 2}}};
  EXPECT_EQ("bad_held_out", put_in_order(rows, {}, other).reason());
}

TEST(HeldOut, SaysWhichRowIsIncomplete) {
  std::string text = kRows;
  text.replace(text.find("[5]"), 3, "[5, 6]");
  const Status status = parse_held_out(text).status();
  EXPECT_EQ("bad_held_out", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("rows[1]: 'ids' has 2 values, expected 1"))
      << status.detail();
  for (const char* json : {"", "[]", "{}", R"({"inputs":[],"outputs":[],"rows":[]})",
                           R"({"inputs":[{"name":"x","datatype":"FP32","dims":[2]}]})"})
    EXPECT_EQ("bad_held_out", parse_held_out(json).status().reason()) << json;
  EXPECT_EQ("bad_held_out", read_held_out("/nowhere/held_out.json").status().reason());
}

TEST(HeldOut, DrawsValuesInsideTheirRangesAndMasksOfOnes) {
  const wire::LoadDoc doc{.inputs = {{"ids", DataType::kInt32, {-1, -1}, wire::ValueRange{5, 9}},
                                     {"mask", DataType::kInt64, {-1, -1}, wire::ValueRange{0, 1}}},
                          .outputs = {{"scores", DataType::kFp32, {-1, 2}}}};
  const HeldOut drawn = draw_held_out(doc, 4);
  std::uint32_t longest = 0;
  for (const HeldOutRow& row : drawn.rows) {
    longest = std::max(longest, row.length);
    const auto ids = as_elements<std::int32_t>(row.inputs[0].view());
    ASSERT_EQ(row.length, ids.size());
    for (const std::int32_t id : ids) EXPECT_TRUE(id >= 5 && id <= 9) << id;
    for (const std::int64_t own : as_elements<std::int64_t>(row.inputs[1].view())) EXPECT_EQ(1, own);
  }
  EXPECT_EQ(4U, longest);
}

}  // namespace
}  // namespace tonnage::kit
