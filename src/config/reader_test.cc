// SPDX-License-Identifier: Apache-2.0
#include "config/reader.h"

#include <gtest/gtest.h>

#include "config/nearest.h"

namespace tonnage::config {
namespace {

enum class Colour { kRed, kGreen };

Table parsed(std::string_view text) {
  Result<Table> table = parse_toml(text, "file.toml");
  EXPECT_TRUE(table.is_ok()) << table.status().to_string();
  return std::move(table).value();
}

void expect_error(const Status& status, std::string_view detail) {
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.reason(), "bad_config");
  EXPECT_EQ(status.detail(), detail);
}

TEST(Reader, TakesEveryType) {
  const Table table = parsed(R"(
name = "a"
on = true
ratio = 0.5
whole = 7
size = "64MiB"
plain = 1024
wait_ms = 2.5
colour = "green"
labels = ["x", "y"]
edges = [1, 2]
[free]
text = "t"
count = 3
flag = false
)");
  Reader reader(table);
  std::string name;
  bool on = false;
  double ratio = 0;
  double whole = 0;
  Bytes size;
  Bytes plain;
  Duration wait{};
  Colour colour = Colour::kRed;
  std::vector<std::string> labels;
  std::vector<std::uint32_t> edges;
  std::map<std::string, std::string> free;
  reader.text("name", name);
  reader.boolean("on", on);
  reader.number("ratio", ratio, 0, 1);
  reader.number("whole", whole, 0, 10);
  reader.bytes("size", size);
  reader.bytes("plain", plain);
  reader.duration("wait_ms", milliseconds(1), wait);
  reader.choice("colour", colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}});
  reader.texts("labels", labels);
  reader.integers("edges", edges, 1, 100);
  reader.free_table("free", free);
  EXPECT_EQ(reader.finish().to_string(), "ok");
  EXPECT_EQ(name, "a");
  EXPECT_TRUE(on);
  EXPECT_EQ(ratio, 0.5);
  EXPECT_EQ(whole, 7);
  EXPECT_EQ(size, mib(64));
  EXPECT_EQ(plain, kib(1));
  EXPECT_EQ(wait, microseconds(2500));
  EXPECT_EQ(colour, Colour::kGreen);
  EXPECT_EQ(labels, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(edges, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(free, (std::map<std::string, std::string>{{"count", "3"}, {"flag", "false"}, {"text", "t"}}));
}

TEST(Reader, LeavesTheDefaultOfAnAbsentKey) {
  const Table table = parsed("");
  Reader reader(table);
  int value = 42;
  reader.integer("absent", value, 0, 100);
  EXPECT_TRUE(reader.finish().is_ok());
  EXPECT_EQ(value, 42);
}

TEST(Reader, RefusesAnUnknownKeyAndNamesTheNearest) {
  const Table table = parsed("\nmax_lenght = 5\n");
  Reader reader(table);
  int value = 0;
  reader.integer("max_length", value, 0, 100);
  reader.integer("rows", value, 0, 100);
  expect_error(reader.finish(), "file.toml:2: unknown key 'max_lenght'; did you mean 'max_length'?");
}

TEST(Reader, ListsWhatIsAllowedWhereNothingIsNear) {
  const Table table = parsed("zebra = 5");
  Reader reader(table);
  int value = 0;
  reader.integer("rows", value, 0, 100);
  reader.integer("window", value, 0, 100);
  expect_error(reader.finish(), "file.toml:1: unknown key 'zebra'; allowed: rows, window");
}

TEST(Reader, RefusesUnknownKeysInsideNestedTables) {
  const Table table = parsed("[[input]]\nname = \"a\"\n[[input]]\nnmae = \"b\"\n");
  Reader reader(table);
  std::string name;
  reader.tables("input", [&](Reader& input) { input.text("name", name); });
  expect_error(reader.finish(), "file.toml:4: unknown key 'input[1].nmae'; did you mean 'name'?");
}

TEST(Reader, SaysWhatTypeWasFound) {
  const Table table = parsed("rows = \"three\"");
  Reader reader(table);
  int rows = 1;
  reader.integer("rows", rows, 1, 9);
  expect_error(reader.finish(), "file.toml:1: 'rows' is a string; it must be an integer (1 to 9)");
  EXPECT_EQ(rows, 1);
}

TEST(Reader, SaysWhichRangeIsAllowed) {
  const Table table = parsed("[batching]\nmax_rows = 300");
  Reader reader(table);
  int rows = 1;
  reader.table("batching", [&](Reader& batching) { batching.integer("max_rows", rows, 1, 256); });
  expect_error(reader.finish(), "file.toml:2: 'batching.max_rows' is 300; allowed: 1 to 256");
}

TEST(Reader, SaysWhichWordsAreAllowed) {
  const Table table = parsed("colour = \"blue\"");
  Reader reader(table);
  Colour colour = Colour::kRed;
  reader.choice("colour", colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}});
  expect_error(reader.finish(), "file.toml:1: 'colour' is \"blue\"; allowed: \"red\", \"green\"");
}

TEST(Reader, KeepsTheFirstError) {
  const Table table = parsed("a = 1\nb = 1");
  Reader reader(table);
  std::string text;
  reader.text("b", text);
  reader.text("a", text);
  expect_error(reader.finish(), "file.toml:2: 'b' is an integer; it must be a string");
}

TEST(Reader, RefusesNumbersThatAreNotNumbersAndNegativeTimes) {
  for (const char* text : {"x = nan", "x = inf", "x = -1.0"}) {
    const Table table = parsed(text);
    Reader reader(table);
    double value = 0;
    reader.number("x", value, 0, 1);
    EXPECT_EQ(reader.finish().reason(), "bad_config") << text;
    Reader again(table);
    Duration duration{};
    again.duration("x", seconds(1), duration);
    EXPECT_EQ(again.finish().reason(), "bad_config") << text;
  }
}

TEST(Toml, SyntaxErrorsNameFileAndLine) {
  const Result<Table> table = parse_toml("a = 1\nb = = 2\n", "file.toml");
  ASSERT_FALSE(table.is_ok());
  EXPECT_EQ(table.status().reason(), "bad_config");
  EXPECT_EQ(table.status().detail().rfind("file.toml:2: ", 0), 0U) << table.status().detail();
}

TEST(Toml, ATextThatNoKeyCanBeginWithIsAnErrorAndEndsNothing) {
  for (const char* text :
       {"[=]", "[[=]]", "[.a]", "[\x01]", "[[", "[ ", "= 1", "a = [", "a.=1", "\"", "a = {,}"}) {
    EXPECT_EQ("bad_config", parse_toml(text, "file.toml").status().reason()) << text;
  }
}

TEST(Toml, RefusesDatesDuplicatesAndDeepNesting) {
  EXPECT_FALSE(parse_toml("a = 1979-05-27", "f").is_ok());
  EXPECT_FALSE(parse_toml("a = 1\na = 2", "f").is_ok());
  EXPECT_FALSE(parse_toml("a = " + std::string(100000, '['), "f").is_ok());
}

TEST(Toml, AMissingFileIsNotFound) {
  EXPECT_EQ(parse_toml_file("/nonexistent/model.toml").status().code(), Code::kNotFound);
}

TEST(NearestWord, CountsASwapOfNeighboursAsOneMistake) {
  const std::vector<std::string> words = {"serve", "inspect", "load"};
  EXPECT_EQ(nearest_word("sreve", words), "serve");
  EXPECT_EQ(nearest_word("laod", words), "load");
  EXPECT_EQ(nearest_word("inspct", words), "inspect");
  EXPECT_FALSE(nearest_word("zzz", words).has_value());
  EXPECT_FALSE(nearest_word(std::string(100000, 'a'), words).has_value());
}

TEST(Toml, CharactersThatAreNotAsciiStandInStringsAndCommentsOnly) {
  const Result<Table> bad = parse_toml("a = 1\n\xEF\xBA\xBF = 2\n", "m.toml");
  EXPECT_EQ(bad.status().detail(),
            "m.toml:2: characters that are not ASCII stand in strings and comments only");
  EXPECT_FALSE(parse_toml("a = 'x' \xC3\xA4", "m.toml").is_ok());
  EXPECT_FALSE(parse_toml("a = \"\"\"x\"\"\" \xC3\xA4", "m.toml").is_ok());
  EXPECT_FALSE(parse_toml("a = \"\"\"x\"\"\"\" \xEF\xBA\xBF", "m.toml").is_ok());
  for (const char* good : {"\xEF\xBB\xBF"
                           "a = 1",
                           "a = \"\xC3\xA4 \\\" \xC3\xA4\"", "a = '\xC3\xA4'  # \xC3\xA4",
                           "a = \"\"\"\n\xC3\xA4 \" '\n\"\"\"", "a = '''\n\xC3\xA4 \"\n'''", "a = \"\""}) {
    const Result<Table> parsed = parse_toml(good, "m.toml");
    EXPECT_TRUE(parsed.is_ok()) << good << ": " << parsed.status().to_string();
  }
}

}  // namespace
}  // namespace tonnage::config
