// SPDX-License-Identifier: Apache-2.0
#include "codec/sagemaker/csv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tonnage::codec::sagemaker {
namespace {

using Table = std::vector<std::vector<std::string>>;

Table read(std::string_view text, Status* status = nullptr) {
  CsvReader reader(text);
  Table table;
  while (reader.next()) {
    auto& row = table.emplace_back();
    for (const CsvCell& cell : reader.cells()) row.emplace_back(cell.text);
  }
  if (status != nullptr) *status = reader.status();
  return table;
}

TEST(Csv, ReadsRecordsWithAnyEndOfLine) {
  const Table expected = {{"1", "2"}, {"3", "4"}};
  for (const char* text : {"1,2\n3,4", "1,2\n3,4\n", "1,2\r\n3,4\r\n", "1,2\r\n3,4", "1,2\n3,4\n\n\r\n"}) {
    EXPECT_EQ(expected, read(text)) << text;
  }
  EXPECT_EQ(Table{}, read(""));
  EXPECT_EQ(Table{}, read("\n"));
}

TEST(Csv, KeepsEmptyCellsAndEmptyRecordsBetween) {
  EXPECT_EQ((Table{{"", "2", ""}, {""}, {"3"}}), read(",2,\n\n3\n"));
  EXPECT_EQ((Table{{"1", ""}}), read("1,"));
}

TEST(Csv, QuotedCellsMayHoldCommasQuotesAndLines) {
  EXPECT_EQ((Table{{"a,b", "say \"no\"", "two\nlines", ""}, {"x"}}),
            read("\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",\"\"\r\nx"));
  EXPECT_EQ((Table{{"\""}}), read("\"\"\"\""));
  EXPECT_EQ((Table{{"5\" disk"}}), read("5\" disk"));
}

TEST(Csv, RefusesBrokenQuotesByRowAndColumn) {
  const struct {
    const char* text;
    const char* where;
  } cases[] = {{"1,2\n3,\"4", "row 2, column 2"},
               {"\"a\"b", "row 1, column 1"},
               {"\"", "row 1, column 1"},
               {"\"a\"\"", "row 1, column 1"}};
  for (const auto& c : cases) {
    Status status;
    (void)read(c.text, &status);
    EXPECT_EQ("bad_csv", status.reason()) << c.text;
    EXPECT_NE(std::string::npos, status.detail().find(c.where)) << status.detail();
  }
}

TEST(Csv, WrittenCellsReadBack) {
  for (const char* text : {"plain", "a,b", "say \"no\"", "two\nlines", ""}) {
    std::string out;
    append_csv_cell(out, text);
    out += ",end";
    EXPECT_EQ((Table{{text, "end"}}), read(out)) << out;
  }
}

}  // namespace
}  // namespace tonnage::codec::sagemaker
