// SPDX-License-Identifier: Apache-2.0
#include "codec/json/reader.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>
#include <vector>

#include "base/random.h"

namespace tonnage::codec {
namespace {

Status read_all(std::string_view text) {
  JsonReader reader(text);
  if (reader.skip_value()) reader.finish();
  return reader.status();
}

TEST(JsonReader, AcceptsWhatRfc8259Accepts) {
  for (const char* text : {"{}", "[]", " [ ] ", "null", "true", "\"\"", "0", "-0", "-0.0", "1e3", "1E+3",
                           "10.5e-2", "[1,[2,{\"a\":[]}]]", "{\"a\":1,\"a\":2}",
                           "\"\\u00e9\\ud83d\\ude00\\n\\/\"", "[\n\t1 ,\r 2]", "\"\xc3\xa9\""}) {
    EXPECT_TRUE(read_all(text).is_ok()) << text << ": " << read_all(text).detail();
  }
}

TEST(JsonReader, RefusesWhatRfc8259Refuses) {
  for (const char* text :
       {"",       " ",       "{",        "[",          "}",           "[1,]",        "[,1]",
        "[1 2]",  "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}",       "{1:1}",       "01",
        "-",      "-01",     "1.",       ".5",         "1e",          "1e+",         "+1",
        "0x1",    "NaN",     "Infinity", "-Infinity",  "nul",         "tru",         "truefalse",
        "\"",     "\"\\\"",  "\"\\x\"",  "\"\\u12\"",  "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"",
        "\"\t\"", "[1]]",    "1 2",      "[1}",        "{\"a\":1]",   "\"\xc3\"",    "\xff",
        "'a'",    "// a\n1", "[1e5.]"}) {
    EXPECT_EQ("bad_json", read_all(text).reason()) << text;
  }
}

TEST(JsonReader, CountsDepthAndDoesNotRecurse) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(read_all(nested(64)).is_ok());
  EXPECT_EQ("json_depth", read_all(nested(65)).reason());
  EXPECT_EQ("json_depth", read_all(nested(250'000)).reason());
  EXPECT_EQ("json_depth", read_all(std::string(250'000, '[')).reason());
}

TEST(JsonReader, ReadsKeysValuesAndEscapes) {
  JsonReader reader(R"({"a\u0062": [1, 2.5, "x\ty"], "c": true})");
  std::string_view key;
  std::string_view text;
  JsonNumber number;
  bool flag = false;
  ASSERT_TRUE(reader.enter_object() && reader.next_key(key));
  EXPECT_EQ("ab", key);
  ASSERT_TRUE(reader.enter_array() && reader.next_element() && reader.read_number(number));
  EXPECT_EQ("1", number.text);
  EXPECT_TRUE(number.is_integer);
  ASSERT_TRUE(reader.next_element() && reader.read_number(number));
  EXPECT_FALSE(number.is_integer);
  ASSERT_TRUE(reader.next_element() && reader.read_string(text));
  EXPECT_EQ("x\ty", text);
  EXPECT_FALSE(reader.next_element());
  ASSERT_TRUE(reader.next_key(key) && reader.read_bool(flag));
  EXPECT_TRUE(flag);
  EXPECT_FALSE(reader.next_key(key));
  EXPECT_TRUE(reader.finish()) << reader.status().detail();
}

TEST(JsonReader, ASkippedValueCanBeReadLater) {
  JsonReader reader(R"({"data":[7],"shape":[1]})");
  std::string_view key;
  ASSERT_TRUE(reader.enter_object() && reader.next_key(key));
  const auto data = reader.bookmark();
  ASSERT_TRUE(reader.skip_value() && reader.next_key(key));
  EXPECT_EQ("shape", key);
  const auto here = reader.bookmark();
  reader.go_to(data);
  JsonNumber number;
  ASSERT_TRUE(reader.enter_array() && reader.next_element() && reader.read_number(number));
  EXPECT_EQ("7", number.text);
  reader.go_to(here);
  EXPECT_TRUE(reader.skip_value() && !reader.next_key(key) && reader.finish());
}

TEST(JsonReader, TheFirstErrorSticks) {
  JsonReader reader("[1 2]");
  EXPECT_FALSE(reader.skip_value());
  const std::string first = reader.status().detail();
  EXPECT_NE(std::string::npos, first.find("byte 3"));
  EXPECT_FALSE(reader.enter_array());
  EXPECT_EQ(first, reader.status().detail());
  EXPECT_EQ(JsonKind::kNothing, reader.peek());
}

// Property: on mutated documents we accept exactly what simdjson accepts, numbers out of its range aside.
TEST(JsonReader, AgreesWithSimdjsonOnMutatedTexts) {
  const std::vector<std::string> seeds = {
      R"({"id":"a","inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[[1.5,-2e3]]}],"outputs":[]})",
      R"([true,false,null,"\u00e9\ud83d\ude00",0.1,-0,{"a":{"b":[1,[2,[3]]]}}])"};
  const std::string_view alphabet = "{}[]:,\"\\ue+-.0123456789tfn \n\xc3\xa9\xff";
  Random random(99);
  simdjson::dom::parser parser;
  int accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text = seeds[random.below(seeds.size())];
    for (std::uint64_t edit = 0, edits = 1 + random.below(3); edit < edits; ++edit) {
      const std::size_t at = random.below(text.size());
      const char c = alphabet[random.below(alphabet.size())];
      switch (random.below(3)) {
        case 0: text[at] = c; break;
        case 1: text.insert(at, 1, c); break;
        default: text.erase(at, 1 + random.below(3)); break;
      }
    }
    const auto theirs = parser.parse(text).error();
    if (theirs == simdjson::NUMBER_ERROR) continue;
    const Status ours = read_all(text);
    ASSERT_EQ(theirs == simdjson::SUCCESS, ours.is_ok()) << text << "\n" << theirs << "\n" << ours.detail();
    accepted += ours.is_ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 5'000);  // both outcomes were met
}

}  // namespace
}  // namespace tonnage::codec
