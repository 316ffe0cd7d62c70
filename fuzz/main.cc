// SPDX-License-Identifier: Apache-2.0
// The program of `./dev fuzz`: libFuzzer around one target. `--target=NAME`; `--seeds=FOLDER` writes the
// target's seeds there first. Words with two dashes are ours, those with one are libFuzzer's.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/target.h"

namespace {

const tonnage::fuzz::Target* target = nullptr;

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : target->seeds()) {
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
  }
}

[[noreturn]] void name_targets() {
  std::fputs("which target? --target=NAME:\n", stderr);
  for (const auto& each : tonnage::fuzz::targets()) {
    std::fprintf(stderr, "  %-12s %s\n", each.name.data(), each.what.data());
  }
  std::exit(2);
}

}  // namespace

// libFuzzer looks these two up by their names.
extern "C" int LLVMFuzzerInitialize(int* count, char*** words);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  constexpr std::string_view kTarget = "--target=";
  constexpr std::string_view kSeeds = "--seeds=";
  std::string_view seeds;
  for (int i = 1; i < *count; ++i) {
    const std::string_view word = (*words)[i];
    if (word.starts_with(kTarget)) target = tonnage::fuzz::find_target(word.substr(kTarget.size()));
    if (word.starts_with(kSeeds)) seeds = word.substr(kSeeds.size());
  }
  if (target == nullptr) name_targets();
  if (!seeds.empty()) write_seeds(seeds);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target->run(std::as_bytes(std::span(data, size)));
  return 0;
}
