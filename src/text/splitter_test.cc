// SPDX-License-Identifier: Apache-2.0
#include "text/detail/splitter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "testkit/sha256.h"
#include "text/detail/utf8.h"
#include "text/golden/code_points.h"

namespace tonnage::text::detail {
namespace {

class Words final : public WordSink {
 public:
  explicit Words(std::size_t most = 1U << 30) : most_(most) {}
  bool word(std::string_view utf8) override {
    words.emplace_back(utf8);
    return words.size() < most_;
  }
  bool word_too_long() override {
    ++too_long;
    return true;
  }
  std::vector<std::string> words;
  int too_long = 0;

 private:
  std::size_t most_;
};

std::vector<std::string> split(std::string_view text) {
  Words sink;
  EXPECT_TRUE(Splitter(sink, true).run(text));
  return sink.words;
}

std::string utf8(std::initializer_list<char32_t> codes) {
  std::string text;
  for (const char32_t code : codes) {
    std::array<char, 4> bytes{};
    text.append(bytes.data(), put_code_point(code, bytes.data()));
  }
  return text;
}

// As tools/make_golden_tokens.py hashes: each word ends a line, each text a NUL.
std::string hash_of_block(std::uint32_t first) {
  std::string all;
  for (std::uint32_t value = first; value < first + golden::kBlock; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    const auto code = static_cast<char32_t>(value);
    for (const std::string& text : {utf8({U'a', code, U'b'}), utf8({U'a', 0x302E, code, 0x1B44, U'b'})}) {
      for (const std::string& word : split(text)) all += word + "\n";
      all += '\0';
    }
  }
  return testkit::sha256_hex(as_bytes(all)).substr(0, 8);
}

TEST(Splitter, TreatsEveryCodePointAsTheReferenceDoes) {
  for (std::size_t block = 0; block < golden::kCodePoints.size(); ++block) {
    const auto first = static_cast<std::uint32_t>(block) * golden::kBlock;
    EXPECT_EQ(hash_of_block(first), fmt::format("{:08x}", golden::kCodePoints[block]))
        << fmt::format("U+{:04X} and the {} behind it", first, golden::kBlock - 1);
  }
}

TEST(Splitter, ReportsAWordOfMoreThanAHundredCharactersWithoutItsBytes) {
  Words sink;
  Splitter(sink, true)
      .run(std::string(100, 'a') + " " + std::string(101, 'a') + " b " + std::string(70'000, 'c'));
  EXPECT_EQ(sink.words, (std::vector<std::string>{std::string(100, 'a'), "b"}));
  EXPECT_EQ(sink.too_long, 2);
}

TEST(Splitter, KeepsAHundredCharactersOfFourBytesAndAHundredMarks) {
  std::string wide;
  std::string marks;
  for (int i = 0; i < 100; ++i) wide += "\xF0\x90\x8C\xB0";                             // U+10330, no case
  for (int i = 0; i < 100; ++i) marks += i % 2 == 0 ? "\xE3\x80\xAE" : "\xE1\xAD\x84";  // U+302E, U+1B44
  EXPECT_EQ(split(wide), std::vector<std::string>{wide});
  ASSERT_EQ(split(marks).size(), 1U);
  EXPECT_EQ(split(marks)[0].substr(0, 3), "\xE1\xAD\x84");  // the lower class moved to the front
  EXPECT_EQ(split(marks)[0].size(), marks.size());
}

TEST(Splitter, StopsWhenTheSinkSaysSo) {
  Words sink(2);
  EXPECT_FALSE(Splitter(sink, true).run("one two three four"));
  EXPECT_EQ(sink.words, (std::vector<std::string>{"one", "two"}));
}

TEST(Splitter, SurvivesAnySequenceOfCodePointsAndKeepsWordsBounded) {
  Random random(2026);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint64_t i = random.below(300); i > 0; --i) {
      auto value = random.below(4) == 0 ? random.below(0x110000) : 0x300 + random.below(0x80);
      if (value >= 0xD800 && value < 0xE000) value = 'x';
      text += utf8({static_cast<char32_t>(value)});
    }
    ASSERT_EQ(first_invalid_byte(text), std::nullopt);
    for (const std::string& word : split(text)) {
      EXPECT_FALSE(word.empty());
      EXPECT_LE(word.size(), 4 * kLongestWord);
      EXPECT_EQ(first_invalid_byte(word), std::nullopt);
    }
  }
}

TEST(Utf8, EveryCodePointSurvivesTheWayThereAndBack) {
  for (std::uint32_t value = 0; value < 0x110000; ++value) {
    if (value >= 0xD800 && value < 0xE000) continue;
    const std::string text = utf8({static_cast<char32_t>(value)});
    std::size_t at = 0;
    ASSERT_EQ(first_invalid_byte(text), std::nullopt) << value;
    ASSERT_EQ(next_code_point(text, at), static_cast<char32_t>(value));
    ASSERT_EQ(at, text.size());
  }
}

TEST(Utf8, NamesTheFirstInvalidByte) {
  EXPECT_EQ(first_invalid_byte("abc\xE4\xB8\xADx"), std::nullopt);
  EXPECT_EQ(first_invalid_byte("abc\xE4\xB8x"), 3U);
  EXPECT_EQ(first_invalid_byte("\xC1\x81"), 0U);
  EXPECT_EQ(first_invalid_byte("\xE0\x9F\xBF"), 0U);
  EXPECT_EQ(first_invalid_byte("a\xF5\x80\x80\x80"), 1U);
}

}  // namespace
}  // namespace tonnage::text::detail
