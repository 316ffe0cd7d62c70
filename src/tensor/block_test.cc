// SPDX-License-Identifier: Apache-2.0
#include "tensor/block.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "tensor/strings.h"

namespace tonnage::tensor {
namespace {

std::size_t product(Dims dims) {
  return std::accumulate(dims.begin(), dims.end(), std::size_t{1},
                         [](std::size_t a, std::int64_t b) { return a * static_cast<std::size_t>(b); });
}

// The naive definition: element by element, index by index.
std::vector<std::uint8_t> copied_by_index(const std::vector<std::uint8_t>& from, Dims from_dims,
                                          Dims to_dims) {
  std::vector<std::uint8_t> to(product(to_dims), 0xee);
  std::vector<std::size_t> index(from_dims.size());
  for (std::size_t flat = 0; flat < from.size(); ++flat) {
    std::size_t rest = flat;
    std::size_t target = 0;
    std::size_t stride = 1;
    bool inside = true;
    for (std::size_t i = from_dims.size(); i-- > 0;) {
      const std::size_t at = rest % static_cast<std::size_t>(from_dims[i]);
      rest /= static_cast<std::size_t>(from_dims[i]);
      inside = inside && at < static_cast<std::size_t>(to_dims[i]);
      target += at * stride;
      stride *= static_cast<std::size_t>(to_dims[i]);
    }
    if (inside) to[target] = from[flat];
  }
  return to;
}

TEST(Block, CopiesTheCommonBoxForAnyDims) {
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    const auto rank = static_cast<std::size_t>(random.between(0, 4));
    std::vector<std::int64_t> from_dims(rank);
    std::vector<std::int64_t> to_dims(rank);
    for (std::size_t i = 0; i < rank; ++i) {
      from_dims[i] = random.between(0, 4);
      to_dims[i] = random.below(2) == 0 ? from_dims[i] : random.between(0, 4);
    }
    std::vector<std::uint8_t> from(product(from_dims));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i);
    std::vector<std::uint8_t> to(product(to_dims), 0xee);
    copy_block({std::as_bytes(std::span(from)), from_dims}, {std::as_writable_bytes(std::span(to)), to_dims},
               1);
    ASSERT_EQ(copied_by_index(from, from_dims, to_dims), to) << "round " << round;
  }
}

TEST(Block, OnlyTheFirstDimMayShrinkForAPrefix) {
  using D = std::vector<std::int64_t>;
  EXPECT_TRUE(is_prefix(D{2, 3}, D{5, 3}));
  EXPECT_TRUE(is_prefix(D{}, D{}));
  EXPECT_FALSE(is_prefix(D{2, 2}, D{2, 3}));
  EXPECT_FALSE(is_prefix(D{3}, D{2}));
  EXPECT_FALSE(is_prefix(D{3}, D{3, 1}));
}

TEST(Strings, AreTakenOneByOneAndNeverBeyondTheEnd) {
  std::vector<std::byte> bytes;
  append_string(bytes, "one");
  append_string(bytes, "");
  append_string(bytes, "three");
  ByteView rest = bytes;
  EXPECT_EQ("one", take_string(rest));
  EXPECT_EQ("", take_string(rest));
  EXPECT_EQ("three", take_string(rest));
  EXPECT_FALSE(take_string(rest).has_value());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(strings_size(ByteView(bytes).first(size), 3).has_value()) << size;
  }
  EXPECT_EQ(bytes.size(), strings_size(bytes, 3));
}

TEST(Strings, ALengthNearTheTopOf32BitsIsNotBelieved) {
  const std::vector<std::byte> bytes(8, std::byte{0xff});
  EXPECT_FALSE(strings_size(bytes, 1).has_value());
  EXPECT_FALSE(reshape_strings({bytes, std::vector<std::int64_t>{1LL << 40}}, std::vector<std::int64_t>{1})
                   .has_value());
}

TEST(Strings, ReshapedPadWithEmptyAndCut) {
  std::vector<std::byte> bytes;
  for (const char* text : {"a", "b", "c", "d"}) append_string(bytes, text);
  using D = std::vector<std::int64_t>;
  std::vector<std::byte> padded;
  for (const char* text : {"a", "b", "", "c", "d", ""}) append_string(padded, text);
  EXPECT_EQ(padded, reshape_strings({bytes, D{2, 2}}, D{2, 3}));
  std::vector<std::byte> cut;
  for (const char* text : {"a", "c"}) append_string(cut, text);
  EXPECT_EQ(cut, reshape_strings({bytes, D{2, 2}}, D{2, 1}));
}

}  // namespace
}  // namespace tonnage::tensor
