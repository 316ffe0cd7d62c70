// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/scratch_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tonnage::supervisor::detail {
namespace {

namespace fs = std::filesystem;

class Scratch : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tonnage_scratch_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  ScratchFolder make() { return ScratchFolder::make(root_).value(); }

  std::string root_;
};

TEST_F(Scratch, IsThereForItsOwnerOnlyAndGoesWithWhatIsInIt) {
  fs::path path;
  {
    const ScratchFolder folder = make();
    path = folder.path();
    EXPECT_EQ(fs::perms::owner_all, fs::status(path).permissions());
    fs::create_directories(path / "deep");
    std::ofstream(path / "deep" / "weights.so") << "unpacked";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Scratch, AnotherOneLeavesThoseThatAreInUse) {
  const ScratchFolder first = make();
  const ScratchFolder second = make();
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(fs::exists(first.path()));
}

TEST_F(Scratch, TheNextOneRemovesWhatAKilledFrontLeftAndNothingElse) {
  const fs::path left = fs::path(root_) / "tonnage-worker-abcdef";
  const fs::path other = fs::path(root_) / "somebody-elses";
  fs::create_directories(left / "data");
  fs::create_directories(other);
  const ScratchFolder folder = make();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(Scratch, AMovedOneIsRemovedOnce) {
  ScratchFolder folder = make();
  const std::string path = folder.path();
  {
    const ScratchFolder moved = std::move(folder);
    EXPECT_EQ(path, moved.path());
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(folder.path().empty());  // NOLINT(bugprone-use-after-move): that is the promise
}

TEST_F(Scratch, ARootThatIsNotThereIsNamed) {
  const Status status = ScratchFolder::make(root_ + "/absent").status();
  EXPECT_EQ("no_scratch", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find(root_ + "/absent")) << status.detail();
}

}  // namespace
}  // namespace tonnage::supervisor::detail
