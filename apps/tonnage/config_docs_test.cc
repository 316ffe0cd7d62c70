// SPDX-License-Identifier: Apache-2.0
// docs/config.md against the table of settings: every flag with its default, and no flag that is gone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "settings.h"
#include "testkit/paths.h"

namespace tonnage::app {
namespace {

TEST(ConfigDocs, NameEveryFlagWithItsDefault) {
  const std::string page = testkit::source_text("docs/config.md");
  ServeOptions options;
  for (const Setting& setting : serve_settings(options)) {
    const std::string shown = setting.show();
    const std::string row =
        fmt::format("| `--{}` |{} |", setting.flag, shown.empty() ? "" : fmt::format(" `{}`", shown));
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(ConfigDocs, NameNoFlagThatDoesNotExist) {
  const std::string page = testkit::source_text("docs/config.md");
  ServeOptions options;
  std::set<std::string> flags;
  for (const Setting& setting : serve_settings(options)) flags.insert(setting.flag);
  std::size_t rows = 0;
  for (std::size_t at = page.find("\n| `--"); at != std::string::npos; at = page.find("\n| `--", at + 1)) {
    const std::size_t begin = at + 6;
    EXPECT_TRUE(flags.contains(page.substr(begin, page.find('`', begin) - begin))) << page.substr(begin, 30);
    ++rows;
  }
  EXPECT_EQ(rows, flags.size());
}

}  // namespace
}  // namespace tonnage::app
