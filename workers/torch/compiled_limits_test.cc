// SPDX-License-Identifier: Apache-2.0
#include "torch/compiled_limits.h"

#include <gtest/gtest.h>

namespace tonnage::torch_worker {
namespace {

using Facts = std::map<std::string, std::string>;

const Machine kHere{"libtorch 2.13.0", "AVX512", "fpu avx2 fma avx512f"};

Facts facts() {
  return {{kFactTorch, "2.13.0+cpu"}, {kFactIsa, "AVX512"}, {kFactFlags, "avx2 fma"}, {kFactRows, "1 256"}};
}
Facts with(const char* key, const std::string& value) {
  Facts changed = facts();
  changed[key] = value;
  return changed;
}

TEST(CheckMachine, TakesAFileThatWasCompiledForLessThanThisMachineHas) {
  EXPECT_TRUE(check_machine(facts(), kHere).is_ok());
  EXPECT_TRUE(check_machine(with(kFactFlags, ""), kHere).is_ok());
}

TEST(CheckMachine, NamesWhatDiffers) {
  for (const auto& [changed, text] :
       {std::pair{with(kFactTorch, "2.12.1+cpu"), "torch 2.12.1+cpu, this worker runs libtorch 2.13.0"},
        std::pair{with(kFactIsa, "AVX2"), "instruction set AVX2, this machine has AVX512"},
        std::pair{with(kFactFlags, "avx2 amx_tile avx512_bf16"),
                  "a CPU with amx_tile, avx512_bf16, which this"}}) {
    const Status status = check_machine(changed, kHere);
    EXPECT_EQ("wrong_machine", status.reason());
    EXPECT_NE(std::string::npos, status.detail().find(text)) << status.detail();
  }
}

TEST(CheckMachine, RefusesAFileThatDoesNotSay) {
  Facts silent = facts();
  silent.erase(kFactFlags);
  EXPECT_EQ("bad_model_file", check_machine(silent, kHere).reason());
}

TEST(CompiledLimits, RefusesAFileThatLeavesSomethingOpen) {
  using tensor::DataType;
  const auto reason = [](const Facts& said, std::vector<wire::TensorDoc> inputs) {
    return CompiledLimits::from({.runtime = "", .inputs = std::move(inputs), .outputs = {}, .facts = said})
        .status()
        .reason();
  };
  const wire::TensorDoc fixed{"x", DataType::kFp32, {-1, 4}};
  const wire::TensorDoc free{"ids", DataType::kInt64, {-1, -1}, wire::ValueRange{0, 9}};
  EXPECT_EQ("ok", reason(facts(), {fixed}));
  EXPECT_EQ("bad_model_file", reason(facts(), {free})) << "the length has no bounds";
  EXPECT_EQ("ok", reason(with(kFactLength, "1 64"), {free}));
  EXPECT_EQ("bad_model_file", reason(with(kFactLength, "64 1"), {free}));
  EXPECT_EQ("bad_model_file", reason(with(kFactRows, "many"), {fixed}));
  EXPECT_EQ("bad_model_file", reason(facts(), {}));
  EXPECT_EQ("bad_model_file", reason(facts(), {{"ids", DataType::kInt64, {-1, 4}}}))
      << "its values have no range";
}

}  // namespace
}  // namespace tonnage::torch_worker
