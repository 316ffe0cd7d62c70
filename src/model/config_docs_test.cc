// SPDX-License-Identifier: Apache-2.0
// docs/config.md against the keys that model.toml really has: an unknown key's error lists them all.
#include <gtest/gtest.h>

#include <sstream>

#include "model/model_toml.h"
#include "testkit/paths.h"

namespace tonnage::model {
namespace {

// "…; allowed: route, stub, …" → the words.
std::vector<std::string> allowed_keys(const std::string& text) {
  const Result<ModelSpec> spec = parse_model_toml(text, "m");
  EXPECT_FALSE(spec.is_ok());
  const std::string detail = spec.status().detail();
  const auto at = detail.find("allowed: ");
  EXPECT_NE(at, std::string::npos) << detail;
  std::istringstream words(detail.substr(at + 9));
  std::vector<std::string> keys;
  for (std::string word; std::getline(words, word, ',');)
    keys.push_back(word.substr(word.find_first_not_of(' ')));
  return keys;
}

TEST(ConfigDocs, NameEveryKeyOfModelToml) {
  const std::string page = testkit::source_text("docs/config.md");
  const std::string unknown = "zzzzzzzzzzzz = 1\n";
  const std::string tensor = "name = \"x\"\ndatatype = \"FP32\"\ndims = [-1]\n";
  std::size_t found = 0;
  for (const std::string& text :
       {unknown, "[batching]\n" + unknown, "[workers]\n" + unknown, "[native]\n" + unknown,
        "[rotation]\n" + unknown, "[[input]]\n" + tensor + unknown, "[[output]]\n" + tensor + unknown,
        "[tokenizer]\nkind = \"wordpiece\"\nvocab = \"v\"\n" + unknown}) {
    for (const std::string& key : allowed_keys(text)) {
      EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key;
      ++found;
    }
  }
  EXPECT_GE(found, 30U);
}

}  // namespace
}  // namespace tonnage::model
