// SPDX-License-Identifier: Apache-2.0
// ScriptModel: one TorchScript module, run in inference mode. The only door to torch/script.h.
//
// Promises:
//  1. Inputs are wrapped where they lie, without a copy, and are never written to: an input that the
//     module's graph may change in place (known by alias analysis at load) is copied first. Outputs are
//     contiguous CPU tensors that live as long as the Outputs object, and never carry a graph.
//  2. No exception leaves: what the runtime throws comes back as a Status whose detail is the first
//     lines of its text. Whether it was memory is the meter's business (kit/memory_meter.h).
//  3. A batch runs on `threads` threads, fixed at load. Outputs are in the order of the expected docs: a
//  tuple or list by position, a dict by name.
// Threads: one. Owns: the module. Fails with: bad_model_file, wrong_inputs, model_error, bad_output.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/spans.h"
#include "base/status.h"
#include "tensor/datatype.h"
#include "wire/load_doc.h"

namespace tonnage::torch_worker {

struct InputTensor {
  tensor::DataType type = tensor::DataType::kFp32;
  std::span<const std::int64_t> dims;
  ByteView data;
};

struct OutputTensor {
  tensor::DataType type = tensor::DataType::kFp32;
  std::vector<std::int64_t> dims;
  ByteView data;
};

class Outputs {
 public:
  Outputs();
  ~Outputs();
  Outputs(Outputs&&) noexcept;
  Outputs& operator=(Outputs&&) noexcept;

  std::span<const OutputTensor> tensors() const { return tensors_; }

 private:
  friend class ScriptModel;
  struct Storage;  // keeps the tensors alive
  std::unique_ptr<Storage> storage_;
  std::vector<OutputTensor> tensors_;
};

struct ScriptOptions {
  std::string path;
  int threads = 1;
  bool freeze = false;
  std::size_t inputs = 0;                // how many the front will send; 0: not said
  std::vector<wire::TensorDoc> outputs;  // expected; empty: as the module returns them
};

class ScriptModel {
 public:
  static Result<ScriptModel> load(const ScriptOptions& options);
  ~ScriptModel();
  ScriptModel(ScriptModel&&) noexcept;
  ScriptModel& operator=(ScriptModel&&) noexcept;

  Result<Outputs> run(std::span<const InputTensor> inputs);
  // The extra file config.json of the archive; empty where it has none.
  const std::string& config() const;
  // How many inputs the module may change in place, and are therefore copied.
  std::size_t copied_inputs() const;

  static std::string runtime_name();    // "libtorch 2.13.0"
  static std::string cpu_capability();  // "AVX512"

 private:
  struct State;
  explicit ScriptModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::torch_worker
