// SPDX-License-Identifier: Apache-2.0
#include "request/assembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/random.h"
#include "tensor/strings.h"

namespace tonnage::request {
namespace {

using tensor::DataType;

tensor::Shape shape(std::vector<std::int64_t> dims) { return tensor::Shape::make(dims).value(); }

RowOutput floats(std::vector<std::int64_t> dims, std::span<const float> values) {
  return {DataType::kFp32, shape(std::move(dims)), std::as_bytes(values)};
}

void put(Assembly& assembly, std::uint32_t row, RowOutput output) {
  assembly.put(row, std::span(&output, 1));
}

std::vector<float> values_of(const OutputTensor& output) {
  const auto elements = as_elements<float>(output.data.view());
  return {elements.begin(), elements.end()};
}

TEST(Assembly, GivesRowsInTheClientsOrderWhateverOrderTheyEndIn) {
  Random random(7);
  std::vector<std::uint32_t> order(100);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  Assembly assembly(100, {"scores"});
  for (const std::uint32_t row : order) {
    EXPECT_FALSE(assembly.is_complete());
    const std::array<float, 2> values = {static_cast<float>(row), static_cast<float>(row) + 0.5F};
    put(assembly, row, floats({2}, values));
  }
  ASSERT_TRUE(assembly.is_complete());
  const auto outputs = assembly.finish();
  ASSERT_TRUE(outputs.is_ok());
  EXPECT_EQ("[100,2]", outputs.value()[0].shape.to_string());
  const auto all = values_of(outputs.value()[0]);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(static_cast<float>(i), all[2 * i]);
    EXPECT_EQ(static_cast<float>(i) + 0.5F, all[2 * i + 1]);
  }
}

TEST(Assembly, PadsRowsOfDifferentLengthWithZerosToTheLongest) {
  Assembly assembly(2, {"hidden"});
  const std::array<float, 6> wide = {1, 2, 3, 4, 5, 6};
  const std::array<float, 2> narrow = {7, 8};
  put(assembly, 1, floats({3, 2}, wide));
  put(assembly, 0, floats({1, 2}, narrow));
  const auto outputs = assembly.finish();
  ASSERT_TRUE(outputs.is_ok());
  EXPECT_EQ("[2,3,2]", outputs.value()[0].shape.to_string());
  EXPECT_EQ((std::vector<float>{7, 8, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6}), values_of(outputs.value()[0]));
}

TEST(Assembly, PadsInnerDimsToo) {
  Assembly assembly(2, {"attention"});
  const std::array<float, 4> wide = {1, 2, 3, 4};
  const std::array<float, 1> narrow = {9};
  put(assembly, 0, floats({1, 1}, narrow));
  put(assembly, 1, floats({2, 2}, wide));
  const auto outputs = assembly.finish();
  ASSERT_TRUE(outputs.is_ok());
  EXPECT_EQ((std::vector<float>{9, 0, 0, 0, 1, 2, 3, 4}), values_of(outputs.value()[0]));
}

TEST(Assembly, PadsStringsWithEmptyOnes) {
  std::vector<std::byte> two;
  tensor::append_string(two, "ab");
  tensor::append_string(two, "c");
  std::vector<std::byte> one;
  tensor::append_string(one, "d");
  Assembly assembly(2, {"words"});
  put(assembly, 0, {DataType::kBytes, shape({1}), one});
  put(assembly, 1, {DataType::kBytes, shape({2}), two});
  const auto outputs = assembly.finish();
  ASSERT_TRUE(outputs.is_ok());
  EXPECT_EQ("[2,2]", outputs.value()[0].shape.to_string());
  std::vector<std::byte> expected = one;
  tensor::append_string(expected, "");
  expected.insert(expected.end(), two.begin(), two.end());
  EXPECT_TRUE(std::ranges::equal(expected, outputs.value()[0].data.view()));
}

TEST(Assembly, TheFailedRowOfLowestIndexDecidesTheError) {
  Assembly assembly(4, {"scores"});
  assembly.fail(3, internal("worker_lost", "the worker died"));
  assembly.fail(1, internal("non_finite", "a value is NaN"));
  assembly.fail(2, internal("poison_row", "the row kills"));
  const std::array<float, 1> value = {1};
  put(assembly, 0, floats({1}, value));
  const Status status = assembly.finish().status();
  EXPECT_EQ("non_finite", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("row 1"));
}

TEST(Assembly, KeepsTheRetryAfterOfAFailure) {
  Assembly assembly(1, {"scores"});
  assembly.fail(0, Status(Code::kOverloaded, "over_budget", "full").with_retry_after(3));
  EXPECT_EQ(3, assembly.finish().status().retry_after_seconds());
}

TEST(Assembly, ASecondAnswerOfARowIsABugAndChangesNothing) {
  const ExpectBugs expected;
  Assembly assembly(1, {"scores"});
  const std::array<float, 1> first = {1};
  const std::array<float, 1> second = {2};
  put(assembly, 0, floats({1}, first));
  const std::uint64_t before = bug_count();
  put(assembly, 0, floats({1}, second));
  assembly.fail(0, internal("x", "y"));
  EXPECT_EQ(before + 2, bug_count());
  EXPECT_EQ((std::vector<float>{1}), values_of(assembly.finish().value()[0]));
}

TEST(Assembly, RefusesOutputsThatDoNotFillTheirShape) {
  const std::array<float, 2> two = {1, 2};
  const std::array<std::byte, 3> cut{};
  const std::vector<RowOutput> cases = {floats({3}, two), {DataType::kBytes, shape({1}), cut}};
  for (const RowOutput& output : cases) {
    Assembly assembly(1, {"scores"});
    put(assembly, 0, output);
    EXPECT_EQ("bad_output", assembly.finish().status().reason());
  }
}

TEST(Assembly, RefusesRowsWhoseTypesOrRanksDiffer) {
  const std::array<float, 2> two = {1, 2};
  const std::vector<RowOutput> others = {floats({2, 1}, two),
                                         {DataType::kInt32, shape({2}), std::as_bytes(std::span(two))}};
  for (const RowOutput& other : others) {
    Assembly assembly(2, {"scores"});
    put(assembly, 0, floats({2}, two));
    put(assembly, 1, other);
    EXPECT_EQ("bad_output", assembly.finish().status().reason());
  }
}

TEST(Assembly, RefusesRowsThatPaddingWouldBlowUp) {
  const std::vector<float> values(1000, 1.0F);
  Assembly assembly(2, {"scores"});
  put(assembly, 0, floats({1, 1000}, values));
  put(assembly, 1, floats({1000, 1}, values));
  EXPECT_EQ("bad_output", assembly.finish().status().reason());
}

TEST(Assembly, FinishedBeforeItsRowsIsABug) {
  const ExpectBugs expected;
  Assembly assembly(2, {"scores"});
  EXPECT_EQ("incomplete", assembly.finish().status().reason());
}

}  // namespace
}  // namespace tonnage::request
