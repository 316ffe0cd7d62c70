// SPDX-License-Identifier: Apache-2.0
#include "wire/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace tonnage::wire {
namespace {

UniqueFd duplicate(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

std::uint64_t allocated(int fd) {
  struct stat info {};
  EXPECT_EQ(0, ::fstat(fd, &info));
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

void write_text(Segment& segment, std::size_t offset, std::string_view text) {
  std::memcpy(segment.view().data() + offset, text.data(), text.size());
}

TEST(Segment, HasItsPagesFromTheStart) {
  const auto segment = Segment::create("test", kib(64));
  ASSERT_TRUE(segment.is_ok());
  EXPECT_EQ(kib(64), segment->size());
  EXPECT_EQ(64U * 1024, allocated(segment->fd()));
}

TEST(Segment, CannotBeResizedByWhoeverHoldsIt) {
  const auto segment = Segment::create("test", kib(8));
  const UniqueFd other = duplicate(segment->fd());
  EXPECT_EQ(-1, ::ftruncate(other.get(), 0));
  EXPECT_EQ(-1, ::ftruncate(other.get(), 1 << 20));
  EXPECT_EQ(-1, ::fcntl(other.get(), F_ADD_SEALS, F_SEAL_WRITE));
}

TEST(Segment, IsSharedWithTheOtherSide) {
  auto mine = Segment::create("test", kib(8));
  const auto yours = Segment::open(duplicate(mine->fd()), kib(8), Access::kReadOnly);
  ASSERT_TRUE(yours.is_ok());
  write_text(*mine, 100, "hello");
  EXPECT_EQ("hello", as_text(yours->view().subspan(100, 5)));
}

TEST(Segment, RefusesMemoryThatCouldShrink) {
  UniqueFd fd(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(0, ::ftruncate(fd.get(), 8192));
  EXPECT_EQ("bad_segment", Segment::open(duplicate(fd.get()), kib(8), Access::kReadOnly).status().reason());
  ASSERT_EQ(0, ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL));
  EXPECT_EQ("bad_segment", Segment::open(duplicate(fd.get()), kib(8), Access::kReadOnly).status().reason());
}

TEST(Segment, RefusesWhatIsSmallerThanSaidOrNoMemoryAtAll) {
  const auto small = Segment::create("test", kib(4));
  EXPECT_EQ("bad_segment",
            Segment::open(duplicate(small->fd()), kib(8), Access::kReadOnly).status().reason());
  std::array<int, 2> pipe{};
  ASSERT_EQ(0, ::pipe2(pipe.data(), O_CLOEXEC));
  const UniqueFd writer(pipe[1]);
  EXPECT_EQ("bad_segment", Segment::open(UniqueFd(pipe[0]), kib(4), Access::kReadOnly).status().reason());
  EXPECT_EQ("bad_segment", Segment::open(UniqueFd(), kib(4), Access::kReadOnly).status().reason());
}

TEST(Segment, OfASizeThatCannotBeIsAnError) {
  EXPECT_EQ("bad_segment", Segment::create("test", Bytes()).status().reason());
  EXPECT_EQ("bad_segment", Segment::create("test", Bytes::max()).status().reason());
}

TEST(Segment, CopiesOutOnlyFromInside) {
  auto segment = Segment::create("test", kib(4));
  write_text(*segment, 4090, "abcdef");
  std::array<std::byte, 6> into{};
  EXPECT_TRUE(segment->copy_out(4090, into).is_ok());
  EXPECT_EQ("abcdef", as_text(into));
  EXPECT_EQ("bad_segment", segment->copy_out(4091, into).reason());
  EXPECT_EQ("bad_segment", segment->copy_out(~0ULL - 2, into).reason());
}

TEST(Segment, CopiesZerosOutOfAHoleThatThePeerPunched) {
  auto segment = Segment::create("test", kib(8));
  write_text(*segment, 0, "abc");
  ASSERT_EQ(0, ::fallocate(segment->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192));
  std::array<std::byte, 3> into{};
  EXPECT_TRUE(segment->copy_out(0, into).is_ok());
  EXPECT_EQ(std::string_view("\0\0\0", 3), as_text(into));
}

TEST(Segment, LendsADescriptorThatCannotWrite) {
  auto segment = Segment::create("test", kib(4));
  auto fd = segment->read_only_fd();
  ASSERT_TRUE(fd.is_ok());
  EXPECT_EQ(-1, ::write(fd->get(), "x", 1));
  EXPECT_EQ("shared_memory",
            Segment::open(duplicate(fd->get()), kib(4), Access::kReadWrite).status().reason());
  EXPECT_TRUE(Segment::open(std::move(*fd), kib(4), Access::kReadOnly).is_ok());
}

TEST(Segment, MovesWithItsMapping) {
  auto first = Segment::create("a", kib(4));
  auto second = Segment::create("b", kib(8));
  write_text(*second, 0, "second");
  *first = std::move(*second);
  EXPECT_EQ(kib(8), first->size());
  EXPECT_EQ("second", as_text(first->view().first(6)));
}

TEST(SealedText, IsReadAsWritten) {
  const std::string text(100'000, 'j');
  const auto fd = sealed_text("doc", text);
  ASSERT_TRUE(fd.is_ok());
  EXPECT_EQ(text, read_sealed_text(fd->get(), mib(1)).value());
  EXPECT_EQ("", read_sealed_text(sealed_text("empty", "")->get(), mib(1)).value());
}

TEST(SealedText, IsRefusedWhenItIsLargeOrCouldChange) {
  const auto fd = sealed_text("doc", "0123456789");
  EXPECT_EQ("bad_segment", read_sealed_text(fd->get(), Bytes(9)).status().reason());
  const auto writable = Segment::create("doc", Bytes(10));
  EXPECT_EQ("bad_segment", read_sealed_text(writable->fd(), Bytes(10)).status().reason());
}

}  // namespace
}  // namespace tonnage::wire
