// SPDX-License-Identifier: Apache-2.0
// What a compiled program works for, as its file says, and the proof that a run, and this machine, are that.
// No torch in here.
// Threads: pure, except cpu_flags(). Fails with: bad_model_file, wrong_machine, wrong_inputs, bad_input.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kit/runtime.h"
#include "wire/load_doc.h"

namespace tonnage::torch_worker {

// Facts that the exporter writes into the file; docs/wire.md has no word of them.
inline constexpr const char* kFactTorch = "compiled_for_torch";          // "2.13.0+cpu"
inline constexpr const char* kFactIsa = "compiled_for_instruction_set";  // "AVX512"
inline constexpr const char* kFactFlags = "compiled_for_cpu_flags";      // "avx2 fma …"
inline constexpr const char* kFactRows = "compiled_for_rows";            // "1 256"
inline constexpr const char* kFactLength = "compiled_for_length";        // "1 512"; absent: no free dim

struct Machine {
  std::string runtime;          // "libtorch 2.13.0"
  std::string instruction_set;  // "AVX512"
  std::string flags;            // of the CPU, as the kernel names them
};
std::string cpu_flags();

Status check_machine(const std::map<std::string, std::string>& facts, const Machine& machine);

class CompiledLimits {
 public:
  static Result<CompiledLimits> from(const wire::LoadedDoc& said);
  // The inputs that a front names must be those of the program, in its order.
  Status check_agreement(std::span<const wire::TensorDoc> inputs) const;
  // What the kit does not know (kit/runtime.h, promise 2): bounds of rows and length, one length for all.
  Status check(const kit::RunView& view) const;

 private:
  wire::ValueRange rows_{};
  std::optional<wire::ValueRange> length_;
  std::vector<wire::TensorDoc> inputs_;  // integer ones with their range
};

}  // namespace tonnage::torch_worker
