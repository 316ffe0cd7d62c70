// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "text/golden/by_hand.h"
#include "text/tokenizer.h"

namespace tonnage::text {
namespace {

using model::TooLong;

std::string file_with(std::string_view name, std::string_view content) {
  const std::string path = fmt::format("{}/{}", testing::TempDir(), name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::unique_ptr<Tokenizer> tokenizer(bool lowercase = true) {
  auto made = make_wordpiece(file_with("by_hand_vocab.txt", golden::kVocabulary), lowercase);
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return std::move(*made);
}

TEST(Wordpiece, GivesTheIdsOfTheReferenceForEveryHandWrittenText) {
  const auto words = tokenizer();
  for (const golden::ByHand& golden : golden::kByHand) {
    const auto tokens = words->encode(golden.text, 4096, TooLong::kRefuse);
    ASSERT_TRUE(tokens.is_ok()) << tokens.status().to_string();
    EXPECT_EQ(tokens->ids, golden.ids) << golden.text;
    EXPECT_FALSE(tokens->truncated);
  }
}

TEST(Wordpiece, TruncatedTextKeepsItsBeginningAndEndsWithSep) {
  const auto words = tokenizer();
  for (const golden::ByHand& golden : golden::kByHand) {
    for (std::uint32_t limit = 2; limit < 40; ++limit) {
      const auto tokens = words->encode(golden.text, limit, TooLong::kTruncate);
      ASSERT_TRUE(tokens.is_ok());
      std::vector<std::int64_t> expected = golden.ids;
      if (expected.size() > limit) {
        expected.resize(limit);
        expected.back() = golden.ids.back();
      }
      EXPECT_EQ(tokens->ids, expected) << golden.text << " at " << limit;
      EXPECT_EQ(tokens->truncated, golden.ids.size() > limit) << golden.text << " at " << limit;
    }
  }
}

TEST(Wordpiece, RefusesExactlyTheTextsThatAreTooLong) {
  const auto words = tokenizer();
  for (const golden::ByHand& golden : golden::kByHand) {
    const auto needed = static_cast<std::uint32_t>(golden.ids.size());
    EXPECT_TRUE(words->encode(golden.text, needed, TooLong::kRefuse).is_ok());
    const Status refused = words->encode(golden.text, needed - 1, TooLong::kRefuse).status();
    EXPECT_EQ(refused.code(), Code::kTooLarge) << golden.text;
    EXPECT_EQ(refused.reason(), "too_long");
  }
}

TEST(Wordpiece, ARefusalTellsTokensNeededAndLimit) {
  const Status refused = tokenizer()->encode("the dvd player does not play", 5, TooLong::kRefuse).status();
  EXPECT_NE(refused.detail().find("8 tokens"), std::string::npos) << refused.detail();
  EXPECT_NE(refused.detail().find("at most 5"), std::string::npos) << refused.detail();
}

TEST(Wordpiece, RefusesUnsplitWhatHasTooManyBytesForAnyTextOfThatLength) {
  const std::string blanks(1'000'000, ' ');
  const Status refused = tokenizer()->encode(blanks, 512, TooLong::kRefuse).status();
  EXPECT_EQ(refused.code(), Code::kTooLarge);
  EXPECT_EQ(refused.reason(), "too_long");
  const auto truncated = tokenizer()->encode(blanks + "the", 512, TooLong::kTruncate);
  ASSERT_TRUE(truncated.is_ok());
  EXPECT_EQ(truncated->ids.size(), 3U);  // it reads on: blanks are no tokens
}

TEST(Wordpiece, RefusesInvalidUtf8AndNamesTheByte) {
  const auto words = tokenizer();
  for (const std::string_view bad :
       {"good \xff", "good \xc3", "good \xc0\xaf", "good \xed\xa0\x80", "good \xf4\x90\x80\x80",
        "good \xe4\xb8", "good \x80", "good \xf0\x8f\xbf\xbf"}) {
    for (const TooLong rule : {TooLong::kRefuse, TooLong::kTruncate}) {
      const Status refused = words->encode(bad, 3, rule).status();
      EXPECT_EQ(refused.code(), Code::kInvalidArgument);
      EXPECT_EQ(refused.reason(), "bad_text");
      EXPECT_NE(refused.detail().find("byte 5 "), std::string::npos) << refused.detail();
    }
  }
}

TEST(Wordpiece, ALimitWithoutRoomForClsAndSepIsRefusedUnderBothRules) {
  const auto words = tokenizer();
  for (const std::uint32_t limit : {0U, 1U}) {
    EXPECT_EQ(words->encode("", limit, TooLong::kTruncate).status().reason(), "too_long");
    EXPECT_EQ(words->encode("", limit, TooLong::kRefuse).status().reason(), "too_long");
  }
}

TEST(Wordpiece, KeepsCaseAndAccentsWhenNotLowercasing) {
  const auto words = tokenizer(false);
  const auto plain = words->encode("the dvd", 16, TooLong::kRefuse);
  const auto capital = words->encode("The DVD", 16, TooLong::kRefuse);
  ASSERT_TRUE(plain.is_ok() && capital.is_ok());
  EXPECT_EQ(plain->ids.size(), 4U);
  EXPECT_EQ(capital->ids, (std::vector<std::int64_t>{2, 1, 1, 3}));  // unknown: the vocabulary is lower case
}

TEST(Wordpiece, CountsTheVocabulary) {
  auto small = make_wordpiece(file_with("small_vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nthe"), true);
  ASSERT_TRUE(small.is_ok()) << small.status().to_string();
  EXPECT_EQ((*small)->vocabulary_size(), 5U);
  const auto tokens = (*small)->encode("The cat", 8, TooLong::kRefuse);
  ASSERT_TRUE(tokens.is_ok());
  EXPECT_EQ(tokens->ids, (std::vector<std::int64_t>{2, 4, 1, 3}));
}

TEST(Wordpiece, AVocabularyWithoutItsSpecialPiecesIsRefusedByName) {
  const std::string file = file_with("bad_vocab.txt", "[PAD]\n[UNK]\n[CLS]\nthe\n");
  const Status refused = make_wordpiece(file, true).status();
  EXPECT_EQ(refused.reason(), "bad_vocabulary");
  EXPECT_NE(refused.detail().find("[SEP]"), std::string::npos);
  EXPECT_NE(refused.detail().find(file), std::string::npos);
  EXPECT_EQ(make_wordpiece("/nowhere/vocab.txt", true).status().reason(), "bad_vocabulary");
  EXPECT_EQ(make_wordpiece(file_with("binary_vocab.txt", "[PAD]\n\xff\n"), true).status().reason(),
            "bad_vocabulary");
  EXPECT_EQ(make_wordpiece(testing::TempDir(), true).status().reason(), "bad_vocabulary");
}

}  // namespace
}  // namespace tonnage::text
