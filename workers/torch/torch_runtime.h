// SPDX-License-Identifier: Apache-2.0
// TorchRuntime: a TorchScript module behind the kit's Runtime.
//
// Promises:
//  1. A batch never holds more than its grant of tensor bytes above live(); why it failed is read from
//     the meter's flags: over_grant, pressure, else the model's own fault.
//  2. A failed run leaves nothing behind: live() is what it was, the next run works.
// Options: `freeze` = "true" inlines the weights (peak while loading: twice the weights).
// Threads: one. Owns: the module, the outputs of the last run.
#pragma once

#include <optional>
#include <vector>

#include "kit/memory_meter.h"
#include "kit/runtime.h"
#include "torch/script_model.h"

namespace tonnage::torch_worker {

class TorchRuntime final : public kit::Runtime {
 public:
  explicit TorchRuntime(kit::MemoryMeter& meter) : meter_(meter) {}

  Result<kit::Loaded> load(const wire::LoadDoc& doc) override;
  kit::RunResult run(const kit::RunView& view) override;
  void release_outputs() override { outputs_.reset(); }
  void trim() override {}  // the module caches nothing of its own; the kit purges malloc
  Bytes live() const override { return meter_.live(); }

 private:
  kit::RunError failed(const Status& status) const;

  kit::MemoryMeter& meter_;
  std::optional<ScriptModel> model_;
  std::optional<Outputs> outputs_;
  std::vector<InputTensor> inputs_;
};

}  // namespace tonnage::torch_worker
