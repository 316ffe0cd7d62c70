// SPDX-License-Identifier: Apache-2.0
// AotiModel: a program compiled ahead of time by AOTInductor (.pt2). The only door to its loader.
//
// Promises, beside those of a Model:
//  1. A file that was compiled for another torch, or for instructions that this CPU lacks, is refused with
//     what differs; so is one that does not say which shapes and values it works for.
//  2. Before each run types, ranks, dims, the bounds of rows and length, and the values of integer inputs are
//     proven against what the file says: the compiled program checks nothing, and reads wrong memory or
//     ends the process instead.
// The runtime unpacks the file into TMPDIR and maps it from there; loaders that are constructed at the same
// time race, so a process constructs one.
// Threads: one. Owns: the loader. Fails with, beside a Model's: bad_model_file, wrong_machine, wrong_inputs.
#pragma once

#include <memory>
#include <string>

#include "torch/model.h"
#include "wire/load_doc.h"

namespace tonnage::torch_worker {

class AotiModel final : public Model {
  struct State;

 public:
  explicit AotiModel(std::unique_ptr<State> state);
  static Result<std::unique_ptr<AotiModel>> load(const wire::LoadDoc& doc);
  ~AotiModel() override;

  Result<Outputs> run(const kit::RunView& view) override;
  const std::string& config() const override;
  Bytes uncounted_weights() const override;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::torch_worker
