// SPDX-License-Identifier: Apache-2.0
#include "state/state_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace tonnage::state {
namespace {

class CountingLog final : public telemetry::Log {
 public:
  void write(telemetry::Level level, std::string_view event,
             std::initializer_list<telemetry::Field>) override {
    if (level == telemetry::Level::kWarning) warnings.emplace_back(event);
  }
  std::vector<std::string> warnings;
};

class StateStoreTest : public testing::Test {
 protected:
  StateStoreTest() {
    std::string pattern = testing::TempDir() + "state-XXXXXX";
    EXPECT_NE(nullptr, ::mkdtemp(pattern.data()));
    folder_ = pattern;
  }
  ~StateStoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<StateStore> open() { return StateStore::open(folder_, log_); }

  CountingLog log_;
  std::string folder_;
};

TEST_F(StateStoreTest, RemembersAProfileOverARestart) {
  open()->save("abc", "tonnage-profile 1\nshape 1 2 3\n");
  EXPECT_EQ("tonnage-profile 1\nshape 1 2 3\n", open()->load("abc").value_or(""));
  EXPECT_FALSE(open()->load("abd").has_value());
  EXPECT_TRUE(log_.warnings.empty());
}

TEST_F(StateStoreTest, KeepsTheNewestProfileOfAFingerprint) {
  const auto store = open();
  store->save("abc", "old");
  store->save("abc", "new");
  EXPECT_EQ("new", store->load("abc").value_or(""));
}

TEST_F(StateStoreTest, TakesTextWithQuotesAndZeroBytesAsItIs) {
  const std::string text("it's \"odd\"; DROP TABLE profiles; \0 end", 39);
  open()->save("a'b", text);
  EXPECT_EQ(text, open()->load("a'b").value_or(""));
}

TEST_F(StateStoreTest, LivesInMemoryWithOneWarningWhereTheFolderCannotBeMade) {
  std::ofstream(folder_ + "/file") << "not a folder";
  const auto store = StateStore::open(folder_ + "/file/below", log_);
  EXPECT_EQ(std::vector<std::string>{"state_in_memory"}, log_.warnings);
  store->save("abc", "text");
  EXPECT_EQ("text", store->load("abc").value_or(""));
}

TEST_F(StateStoreTest, LivesInMemoryWhereTheFileIsDamaged) {
  std::ofstream(folder_ + "/state.sqlite3") << std::string(8192, 'x');
  open()->save("abc", "text");
  EXPECT_EQ(std::vector<std::string>{"state_in_memory"}, log_.warnings);
}

TEST_F(StateStoreTest, LivesInMemoryWhereAnotherServerHoldsTheFolder) {
  const auto first = open();
  first->save("abc", "text");
  const auto second = open();
  EXPECT_EQ(std::vector<std::string>{"state_in_memory"}, log_.warnings);
  EXPECT_FALSE(second->load("abc").has_value());
}

TEST_F(StateStoreTest, IsInMemoryWithoutAWarningWhenAskedFor) {
  StateStore::open("", log_)->save("abc", "text");
  EXPECT_FALSE(StateStore::open("", log_)->load("abc").has_value());
  EXPECT_TRUE(log_.warnings.empty());
}

}  // namespace
}  // namespace tonnage::state
