// SPDX-License-Identifier: Apache-2.0
// ScriptModel: one TorchScript module, run in inference mode. The only door to torch/script.h.
//
// Promises, beside those of a Model:
//  1. Inputs are wrapped where they lie, without a copy, except those that the module's graph may change
//     in place (known by alias analysis at load).
//  2. Outputs: a tuple or list by position, a dict by name.
//  3. In a lower precision the weights are converted once; float inputs are cast on the way in, outputs
//     on the way out to their declared type. What is neither parameter nor buffer keeps its type.
//  4. On a device weights and arithmetic are there: inputs are copied to it, outputs back, which waits for
//     the run. Not run on a GPU yet.
//  5. A file that is no TorchScript archive is refused by its contents; nothing in it is executed.
// Threads: one. Owns: the module. Fails with, beside a Model's: bad_model_file, wrong_inputs, bad_load_doc.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "torch/model.h"
#include "wire/load_doc.h"

namespace tonnage::torch_worker {

class ScriptModel final : public Model {
  struct State;

 public:
  explicit ScriptModel(std::unique_ptr<State> state);
  // `device` as torch writes it: cpu, cuda:0.
  static Result<std::unique_ptr<ScriptModel>> load(const wire::LoadDoc& doc, const std::string& device);
  ~ScriptModel() override;

  // fp32 leaves everything as it is. Not after freeze().
  Status convert(std::string_view precision);
  // Inlines the weights (peak while loading: twice the weights).
  Status freeze();

  Result<Outputs> run(const kit::RunView& view) override;
  const std::string& config() const override;  // the extra file config.json of the archive
  std::map<std::string, std::string> facts() const override;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::torch_worker
