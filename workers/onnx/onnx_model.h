// SPDX-License-Identifier: Apache-2.0
// OnnxModel: one session of ONNX Runtime on the CPU.
//
// Promises:
//  1. Inputs are wrapped where they lie, without a copy; the runtime only reads them. Outputs live until
//     release_outputs().
//  2. Inputs and outputs are bound by name, in the order of the expected docs; where none are expected, in
//     the order of the file.
//  3. No exception leaves: what the runtime says comes back as a Status. Whether it was memory is the
//     meter's business (kit/memory_meter.h).
//  4. A batch runs on `threads` threads, fixed at load, which do not spin while they wait.
// Threads: one. Owns: the environment, the session, the outputs of the last run.
// Fails with: missing_runtime, bad_model_file, unsupported_model, external_data, wrong_inputs, model_error.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "kit/memory_meter.h"
#include "kit/runtime.h"
#include "wire/load_doc.h"

namespace tonnage::onnx_worker {

class OnnxModel {
 public:
  static Result<OnnxModel> load(const wire::LoadDoc& doc, kit::MemoryMeter& meter);
  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;
  ~OnnxModel();

  Result<std::vector<kit::Tensor>> run(std::span<const kit::Tensor> inputs);
  void release_outputs();

  // Inputs and outputs as the file says, in the order of runs; facts that its exporter wrote.
  const wire::LoadedDoc& doc() const;
  // Of the model file and of the files of its external weights.
  Bytes file_bytes() const;

 private:
  struct State;
  explicit OnnxModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::onnx_worker
