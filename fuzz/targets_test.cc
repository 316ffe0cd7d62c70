// SPDX-License-Identifier: Apache-2.0
// Every fuzz target without libFuzzer: its seeds, mutations of them, and the inputs that once crashed
// (fuzz/crashes/NAME/).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "fuzz/target.h"
#include "testkit/paths.h"

namespace tonnage::fuzz {
namespace {

class FuzzTarget : public testing::TestWithParam<Target> {
 protected:
  static void run(const std::string& input) { GetParam().run(as_bytes(input)); }
};

TEST_P(FuzzTarget, TakesItsSeedsAndMutationsOfThem) {
  const std::vector<std::string> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  Random random(1);
  for (const std::string& seed : seeds) {
    run(seed);
    for (int round = 0; round < 500; ++round) {
      std::string input = seed;
      for (std::uint64_t edit = 0, edits = 1 + random.below(4); edit < edits && !input.empty(); ++edit) {
        const std::size_t at = random.below(input.size());
        switch (random.below(4)) {
          case 0: input[at] = static_cast<char>(random.next()); break;
          case 1: input.erase(at, 1 + random.below(8)); break;
          case 2: input.insert(at, input.substr(random.below(input.size()), 1 + random.below(32))); break;
          default: input.resize(at); break;
        }
      }
      run(input);
    }
  }
  run("");
}

TEST_P(FuzzTarget, TakesWhatOnceCrashedIt) {
  const std::filesystem::path folder = testkit::source_file("fuzz/crashes/" + std::string(GetParam().name));
  if (!std::filesystem::exists(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream in(entry.path(), std::ios::binary);
    run({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
  }
}

INSTANTIATE_TEST_SUITE_P(Parsers, FuzzTarget,
                         testing::ValuesIn(std::vector<Target>(targets().begin(), targets().end())),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace tonnage::fuzz
