// SPDX-License-Identifier: Apache-2.0
#include "kit/checks.h"

#include <gtest/gtest.h>

#include <array>

#include "testkit/example_messages.h"

namespace tonnage::kit {
namespace {

using tensor::DataType;
using testkit::shape_of;

// A slot of 256 zero bytes, aligned as a real one is.
struct Slot {
  alignas(64) std::array<std::byte, 256> bytes{};
};

const std::vector<wire::TensorDoc> kIds = {{"ids", DataType::kInt64, {-1, -1}}};
const std::vector<wire::TensorDoc> kFixed = {{"x", DataType::kInt64, {-1, 3}}};

wire::Run run_with(const wire::TensorLayout& input, std::uint32_t rows = 2) {
  return {.slot = 0, .rows = rows, .length = 4, .grant = {}, .inputs = {input}};
}

Status check(const wire::Run& run, std::span<const wire::TensorDoc> specs = {}) {
  const Slot slot;
  std::vector<Tensor> found;
  return find_inputs(run, slot.bytes, specs, found);
}

TEST(FindInputs, GivesTheBytesOfTheSlot) {
  Slot slot;
  slot.bytes[64] = std::byte{7};
  std::vector<Tensor> found;
  ASSERT_TRUE(
      find_inputs(run_with({DataType::kInt64, shape_of({2, 4}), 64, 64}), slot.bytes, kIds, found).is_ok());
  EXPECT_EQ(slot.bytes.data() + 64, found.at(0).data.data());
  EXPECT_EQ(64U, found.at(0).data.size());
}

TEST(FindInputs, RefusesWhatLiesOutsideTheSlot) {
  EXPECT_TRUE(check(run_with({DataType::kInt64, shape_of({2, 4}), 192, 64})).is_ok());
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 8}), 192, 128})).reason());
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 4}), 256, 64})).reason());
  EXPECT_EQ("bad_tensor",
            check(run_with({DataType::kInt64, shape_of({2, 4}), (1ULL << 63U) - 64, 64})).reason());
}

TEST(FindInputs, RefusesBytesThatAreNotThoseOfTheShape) {
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 4}), 0, 63})).reason());
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 5}), 0, 64})).reason());
  EXPECT_EQ("bad_tensor",
            check(run_with({DataType::kInt64, shape_of({2, 4}), 32, 64})).reason());  // alignment
}

TEST(FindInputs, RefusesWhatDoesNotFitTheModel) {
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kFp64, shape_of({2, 4}), 0, 64}), kIds).reason());
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 4, 1}), 0, 64}), kIds).reason());
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 4}), 0, 64}), kFixed).reason());
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({2, 4}), 0, 64}, 3), kIds).reason());
  EXPECT_EQ("bad_tensor",
            check({.slot = 0, .rows = 1, .length = 0, .grant = {}, .inputs = {}}, kIds).reason());
}

TEST(FindInputs, RefusesAValueOutsideItsRangeAndNamesTheRange) {
  const auto check_ids = [](std::int64_t value, std::optional<wire::ValueRange> range) {
    Slot slot;
    as_elements<std::int64_t>(MutableByteView(slot.bytes))[7] = value;
    const std::vector<wire::TensorDoc> specs = {{"ids", DataType::kInt64, {-1, -1}, range}};
    std::vector<Tensor> found;
    return find_inputs(run_with({DataType::kInt64, shape_of({2, 4}), 0, 64}), slot.bytes, specs, found);
  };
  EXPECT_TRUE(check_ids(99, wire::ValueRange{0, 99}).is_ok());
  EXPECT_TRUE(check_ids(100, std::nullopt).is_ok());
  for (const std::int64_t outside : {std::int64_t{100}, std::int64_t{-1}}) {
    const Status status = check_ids(outside, wire::ValueRange{0, 99});
    EXPECT_EQ("bad_tensor", status.reason());
    EXPECT_NE(std::string::npos, status.detail().find("ids is outside [0, 99]")) << status.detail();
  }
}

TEST(InputSpecs, AreThoseOfTheFrontWithinTheRangesOfTheFile) {
  using Range = std::optional<wire::ValueRange>;
  const auto range_of = [](const Range& named, const Range& loaded) {
    const std::vector<wire::TensorDoc> front = {{"ids", DataType::kInt64, {-1, -1}, named}};
    const std::vector<wire::TensorDoc> file = {{"other", DataType::kInt64, {-1}, wire::ValueRange{5, 5}},
                                               {"ids", DataType::kInt64, {-1, -1}, loaded}};
    const auto specs = input_specs(front, file);
    EXPECT_EQ(1U, specs.size()) << "in the front's order";
    const Range range = specs.at(0).range;
    return range ? std::pair(range->min, range->max) : std::pair(std::int64_t{-1}, std::int64_t{-1});
  };
  const Range wide = wire::ValueRange{0, 99};
  const Range narrow = wire::ValueRange{1, 49};
  EXPECT_EQ(std::pair(std::int64_t{-1}, std::int64_t{-1}), range_of({}, {}));
  for (const auto& [named, loaded] :
       {std::pair{narrow, Range()}, {Range(), narrow}, {wide, narrow}, {narrow, wide}})
    EXPECT_EQ(std::pair(std::int64_t{1}, std::int64_t{49}), range_of(named, loaded));
  EXPECT_EQ(1U, input_specs({}, kIds).size()) << "the file's own, where the front names none";
}

TEST(FindInputs, RefusesARunWithoutRows) {
  EXPECT_EQ("bad_tensor", check(run_with({DataType::kInt64, shape_of({0, 4}), 0, 0}, 0)).reason());
}

TEST(CheckOutputs, CountsTheStringsOfABytesTensor) {
  const std::array<std::byte, 9> two = {std::byte{1}, {}, {}, {}, std::byte{'a'}, {}, {}, {}, {}};
  const auto check_strings = [](ByteView data, std::int64_t count) {
    const std::array<Tensor, 1> outputs = {{{DataType::kBytes, shape_of({count}), data}}};
    return check_outputs(outputs, static_cast<std::uint32_t>(count), {});
  };
  EXPECT_TRUE(check_strings(two, 2).is_ok());
  EXPECT_EQ("bad_tensor", check_strings(two, 1).reason());
  EXPECT_EQ("bad_tensor", check_strings(two, 3).reason());
  EXPECT_EQ("bad_tensor", check_strings(ByteView(two).first(3), 1).reason());
}

TEST(PlaceOutputs, AlignsEachAndCountsAll) {
  const Slot data;
  const std::array<Tensor, 3> outputs = {
      {{DataType::kUint8, shape_of({1, 5}), ByteView(data.bytes).first(5)},
       {DataType::kFp32, shape_of({1, 0}), {}},
       {DataType::kUint8, shape_of({1, 65}), ByteView(data.bytes).first(65)}}};
  std::vector<wire::TensorLayout> at;
  EXPECT_EQ(Bytes(129), place_outputs(outputs, at));
  EXPECT_EQ(0U, at.at(0).offset);
  EXPECT_EQ(64U, at.at(1).offset);
  EXPECT_EQ(64U, at.at(2).offset);
}

}  // namespace
}  // namespace tonnage::kit
