// SPDX-License-Identifier: Apache-2.0
// One fuzz target per parser of bytes that nobody vouches for.
//
// Promises: run() takes any bytes and returns; what it finds wrong ends the process (TONNAGE_CHECK).
// seeds() are good inputs, made by the code itself, from which mutation starts.
// `./dev fuzz NAME` runs one under libFuzzer; fuzz_test runs every seed and some mutations of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/spans.h"

namespace tonnage::fuzz {

struct Target {
  std::string_view name;
  std::string_view what;
  void (*run)(ByteView input);
  std::vector<std::string> (*seeds)();
};

std::span<const Target> targets();
const Target* find_target(std::string_view name);

void run_message(ByteView input);
std::vector<std::string> message_seeds();
void run_documents(ByteView input);
std::vector<std::string> document_seeds();
void run_outputs(ByteView input);
std::vector<std::string> output_seeds();
void run_v2(ByteView input);
std::vector<std::string> v2_seeds();
void run_sagemaker(ByteView input);
std::vector<std::string> sagemaker_seeds();
void run_tokenizer(ByteView input);
std::vector<std::string> tokenizer_seeds();
void run_model_toml(ByteView input);
std::vector<std::string> model_toml_seeds();
void run_profile(ByteView input);
std::vector<std::string> profile_seeds();

}  // namespace tonnage::fuzz
