// SPDX-License-Identifier: Apache-2.0
#include "text/chunks.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tonnage::text {
namespace {

// A token per byte: 1 … n between 101 and 102.
class ByteTokenizer final : public Tokenizer {
 public:
  Result<Tokens> encode(std::string_view text, std::uint32_t max_length, model::TooLong) const override {
    if (text.size() + 2 > max_length) {
      return Status(Code::kTooLarge, "too_long", "at most " + std::to_string(max_length));
    }
    Tokens tokens;
    tokens.ids.resize(text.size() + 2);
    std::iota(tokens.ids.begin(), tokens.ids.end(), 0);
    tokens.ids.front() = 101;
    tokens.ids.back() = 102;
    return tokens;
  }
  std::size_t vocabulary_size() const override { return 128; }
};

LengthRule chunks_of(std::uint32_t length, std::uint32_t overlap = 0, std::uint32_t most = 4) {
  return {length, model::TooLong::kChunk, overlap, most, false};
}

std::vector<Tokens> rows_of(std::size_t tokens, const LengthRule& rule) {
  std::vector<Tokens> rows;
  const Status status = encode_rows(ByteTokenizer(), std::string(tokens, 'x'), rule, rows);
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  return rows;
}

using Ids = std::vector<std::int64_t>;

TEST(Chunks, EachChunkHasItsOwnSpecialTokensAndNoTokenIsLost) {
  const std::vector<Tokens> rows = rows_of(7, chunks_of(5));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].ids, (Ids{101, 1, 2, 3, 102}));
  EXPECT_EQ(rows[1].ids, (Ids{101, 4, 5, 6, 102}));
  EXPECT_EQ(rows[2].ids, (Ids{101, 7, 102}));
  EXPECT_TRUE(rows[0].chunked && !rows[0].continues);
  EXPECT_TRUE(rows[1].continues && rows[2].continues && !rows[1].chunked);
}

TEST(Chunks, ATextThatFitsIsOneRowWithoutAMark) {
  for (const std::size_t tokens : {0U, 1U, 3U}) {
    const std::vector<Tokens> rows = rows_of(tokens, chunks_of(5));
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].ids.size(), tokens + 2);
    EXPECT_FALSE(rows[0].chunked || rows[0].continues);
  }
  EXPECT_EQ(rows_of(6, chunks_of(5)).size(), 2U) << "two full chunks, no empty third";
}

TEST(Chunks, NeighboursShareTheOverlap) {
  const std::vector<Tokens> rows = rows_of(6, chunks_of(6, 2));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].ids, (Ids{101, 1, 2, 3, 4, 102}));
  EXPECT_EQ(rows[1].ids, (Ids{101, 3, 4, 5, 6, 102}));
}

TEST(Chunks, MoreThanTheBoundIsRefusedAndSaysTheBound) {
  EXPECT_EQ(rows_of(12, chunks_of(5)).size(), 4U);
  std::vector<Tokens> rows;
  const Status status = encode_rows(ByteTokenizer(), std::string(13, 'x'), chunks_of(5), rows);
  EXPECT_EQ(status.reason(), "too_long");
  EXPECT_NE(status.detail().find("4 chunks of 5"), std::string::npos) << status.detail();
  EXPECT_TRUE(rows.empty());
}

TEST(Chunks, WhereOnlyTheFirstCountsOnlyTheFirstIsMade) {
  LengthRule rule = chunks_of(5);
  rule.first_chunk_only = true;
  const std::vector<Tokens> rows = rows_of(7, rule);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].ids, (Ids{101, 1, 2, 3, 102}));
  EXPECT_TRUE(rows[0].chunked);
}

TEST(Chunks, MostIdsIsNeverBelowWhatATextGives) {
  for (const LengthRule& rule : {chunks_of(5), chunks_of(9, 3, 7), chunks_of(64, 10, 2)}) {
    std::uint64_t most = 0;
    for (std::size_t tokens = 0; tokens <= 24; ++tokens) {
      std::vector<Tokens> rows;
      if (!encode_rows(ByteTokenizer(), std::string(tokens, 'x'), rule, rows).is_ok()) break;
      std::uint64_t ids = 0;
      for (const Tokens& row : rows) ids += row.ids.size();
      EXPECT_GE(most_ids(tokens, rule), ids) << tokens;
      most = std::max(most, most_ids(tokens, rule));
    }
    EXPECT_GE(most_ids(1'000'000, rule), most) << "a text above the bound is charged as one at the bound";
  }
}

}  // namespace
}  // namespace tonnage::text
