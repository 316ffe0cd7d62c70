// SPDX-License-Identifier: Apache-2.0
// Model: what TorchRuntime runs, however it was loaded (script_model.h, aoti_model.h). No torch in here.
//
// Promises of a model:
//  1. Inputs are never written to: an input that the program may change is copied first.
//  2. Outputs are contiguous CPU tensors that live as long as the Outputs object and carry no graph; their
//     order is that of the expected docs.
//  3. No exception leaves: what the runtime throws comes back as a Status whose detail is the first
//     lines of its text. Whether it was memory is the meter's business (kit/memory_meter.h).
// Threads: one. Fails with: model_error, bad_output, bad_input.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "kit/runtime.h"
#include "kit/tensor.h"

namespace tonnage::torch_worker {

class Outputs {
 public:
  Outputs();
  ~Outputs();
  Outputs(Outputs&&) noexcept;
  Outputs& operator=(Outputs&&) noexcept;

  std::span<const kit::Tensor> tensors() const { return tensors_; }

 private:
  friend struct OutputsBuilder;
  struct Storage;  // keeps the tensors alive
  std::unique_ptr<Storage> storage_;
  std::vector<kit::Tensor> tensors_;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual Result<Outputs> run(const kit::RunView& view) = 0;
  // What the exporter wrote into the file, as JSON; empty where it has nothing.
  virtual const std::string& config() const = 0;
  virtual std::map<std::string, std::string> facts() const { return {}; }
  // Weights that the allocator does not see.
  virtual Bytes uncounted_weights() const { return {}; }
};

}  // namespace tonnage::torch_worker
