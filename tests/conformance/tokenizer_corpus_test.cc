// SPDX-License-Identifier: Apache-2.0
// Every installed text against the reference tokenizer, by hash: src/text/golden/NAME.sha256.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/spans.h"
#include "testkit/paths.h"
#include "testkit/sha256.h"
#include "text/golden/by_hand.h"
#include "text/tokenizer.h"

namespace tonnage::text {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(otherwise) : value;
}

// The folder that `./dev setup --models` makes; TONNAGE_TEXTS names its texts.
fs::path texts() { return variable("TONNAGE_TEXTS", testkit::source_file("build/models/texts")); }

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.is_open()) << path;
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<std::string> pieces_of(const std::string& content, char end) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t stop = content.find(end, at);
    EXPECT_NE(stop, std::string::npos) << "the last piece is not ended";
    pieces.push_back(content.substr(at, stop - at));
    at = stop == std::string::npos ? content.size() : stop + 1;
  }
  return pieces;
}

std::vector<std::string> golden(const std::string& name) {
  return pieces_of(content_of(testkit::source_file("src/text/golden/" + name + ".sha256")), '\n');
}

// The first eight digits over the ids as little-endian int32.
std::string hash_of(const std::vector<std::int64_t>& ids) {
  std::string bytes;
  for (const std::int64_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((id >> shift) & 0xFF);
  }
  return testkit::sha256_hex(as_bytes(bytes)).substr(0, 8);
}

std::unique_ptr<Tokenizer> minilm() {
  auto made = make_wordpiece((texts().parent_path() / "reviews/vocab.txt").string(), true);
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return made.is_ok() ? std::move(*made) : nullptr;
}

void compare(const std::vector<std::string>& all, const std::vector<std::string>& hashes) {
  const auto tokenizer = minilm();
  ASSERT_NE(tokenizer, nullptr);
  ASSERT_EQ(all.size(), hashes.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto tokens = tokenizer->encode(all[i], 1U << 20, model::TooLong::kRefuse);
    ASSERT_TRUE(tokens.is_ok()) << tokens.status().to_string();
    if (hash_of(tokens->ids) == hashes[i]) continue;
    if (++different <= 5) ADD_FAILURE() << "text " << i << " differs: " << all[i].substr(0, 200);
  }
  EXPECT_EQ(different, 0U) << "of " << all.size();
}

struct Corpus {
  const char* name;
  std::size_t texts;  // that the packages are known to hold: an empty golden file would prove nothing
};

class TokenizerCorpus : public testing::TestWithParam<Corpus> {
 protected:
  void SetUp() override {
    if (!fs::exists(texts() / "corpus")) {
      GTEST_SKIP() << "SKIPPED: no texts in " << texts() << "; run: ./dev setup --models";
    }
  }
};

TEST_P(TokenizerCorpus, GivesTheIdsOfTheReferenceForEveryText) {
  const std::string name = GetParam().name;
  const auto hashes = golden(name);
  ASSERT_EQ(hashes.size(), GetParam().texts);
  compare(pieces_of(content_of(texts() / "corpus" / (name + ".nul")), '\0'), hashes);
}

INSTANTIATE_TEST_SUITE_P(Texts, TokenizerCorpus,
                         testing::Values(Corpus{"amazon_snippets", 3708}, Corpus{"movie_snippets", 10605},
                                         Corpus{"editorials", 5190}, Corpus{"tweets", 4200},
                                         Corpus{"movie_reviews", 33530}),
                         [](const auto& corpus) { return std::string(corpus.param.name); });

class TokenizerByHand : public TokenizerCorpus {};

TEST_P(TokenizerByHand, HandWrittenTextsAgreeWithTheRealVocabularyToo) {
  std::vector<std::string> all;
  for (const golden::ByHand& text : golden::kByHand) all.emplace_back(text.text);
  compare(all, golden(GetParam().name));
}

INSTANTIATE_TEST_SUITE_P(Texts, TokenizerByHand, testing::Values(Corpus{"by_hand", 0}));

TEST(Sha256, AgreesWithThePublishedVectors) {
  EXPECT_EQ(testkit::sha256_hex(as_bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(testkit::sha256_hex(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace tonnage::text
