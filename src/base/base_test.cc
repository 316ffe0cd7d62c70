// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/completion.h"
#include "base/device_name.h"
#include "base/json_text.h"
#include "base/status.h"

namespace tonnage {
namespace {

TEST(Bytes, SaturateUpwardInsteadOfWrapping) {
  EXPECT_EQ(Bytes::max(), Bytes(1ULL << 63U) * 4);
  EXPECT_EQ(Bytes::max(), Bytes::max() + Bytes(1));
  EXPECT_EQ(Bytes(), saturating_sub(Bytes(1), Bytes(2)));
}

TEST(Bytes, AreReadInTheUnitsThatPeopleWrite) {
  EXPECT_EQ(mib(600), parse_bytes("600MiB").value());
  EXPECT_EQ(gib(4), parse_bytes("4 GiB").value());
  EXPECT_EQ(Bytes(1500000000), parse_bytes("1.5GB").value());
  EXPECT_EQ(Bytes(1024), parse_bytes("1024").value());
}

TEST(Bytes, RefuseWhatIsNotAnAmount) {
  for (const char* text : {"", "MiB", "-1", "12 parsecs", "nan", "inf", "1e30GiB"}) {
    EXPECT_EQ("bad_size", parse_bytes(text).status().reason()) << text;
  }
}

TEST(Result, ATemporaryMayBeLoopedOver) {
  const auto owner = std::make_shared<int>(7);
  const auto two = [&] { return Result<std::vector<std::shared_ptr<int>>>({owner, owner}); };
  long seen = 0;
  for (const auto& held : two().value()) seen += held.use_count();
  for (const auto& held : *two()) seen += held.use_count();
  EXPECT_EQ(4 * 3, seen) << "both elements and the owner live while the loop runs";
}

TEST(Completion, AnswersOnceAndCountsTheSecond) {
  const ExpectBugs expected;
  int answers = 0;
  Completion<int> done([&](Result<int> result) { answers += result.value(); });
  const auto before = bug_count();
  done.answer(1);
  done.answer(1);
  EXPECT_EQ(1, answers);
  EXPECT_EQ(before + 1, bug_count());
}

TEST(Completion, DroppedUnansweredSaysSo) {
  const ExpectBugs expected;
  std::optional<Status> seen;
  {
    const Completion<int> done([&](const Result<int>& result) { seen = result.status(); });
  }
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ("dropped", seen->reason());
}

TEST(JsonText, EscapesAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(R"("a\"\\\n\u0001é")", json_string("a\"\\\n\x01\xc3\xa9"));
  EXPECT_EQ(R"("\ufffd\ufffdx")", json_string("\xc0\xafx"));
  EXPECT_EQ(R"("\ufffd")", json_string("\xe2").substr(0, 8));
}

TEST(DeviceName, IsCudaAndANumberOfUpToThreeDigits) {
  EXPECT_EQ(0U, cuda_index("cuda:0"));
  EXPECT_EQ(127U, cuda_index("cuda:127"));
  for (const char* other :
       {"", "cpu", "cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:1000", "CUDA:0"})
    EXPECT_EQ(std::nullopt, cuda_index(other)) << other;
}

}  // namespace
}  // namespace tonnage
