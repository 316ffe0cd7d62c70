// SPDX-License-Identifier: Apache-2.0
// TorchRuntime: a model of torch behind the kit's Runtime; which kind, the route says.
//
// Promises:
//  1. A batch never holds more than its grant of tensor bytes above live(); why it failed is read from
//     the meter's flags: over_grant, pressure, else the model's own fault.
//  2. A failed run leaves nothing behind: live() is what it was, the next run works.
//  3. A converted model without held-out rows brings its own, with the answers from before.
// Options, of trace and script: `precision` (fp32, bf16, fp16), `freeze` = "true" (peak while loading: twice
// the weights).
// Threads: one. Owns: the model, the outputs of the last run.
#pragma once

#include <memory>
#include <optional>

#include "kit/memory_meter.h"
#include "kit/runtime.h"
#include "torch/model.h"

namespace tonnage::torch_worker {

class TorchRuntime final : public kit::Runtime {
 public:
  explicit TorchRuntime(kit::MemoryMeter& meter) : meter_(meter) {}

  Result<kit::Loaded> load(const wire::LoadDoc& doc) override;
  kit::RunResult run(const kit::RunView& view) override;
  void release_outputs() override { outputs_.reset(); }
  void trim() override {}  // the model caches nothing of its own; the kit purges malloc
  Bytes live() const override { return meter_.live(); }

 private:
  kit::MemoryMeter& meter_;
  std::unique_ptr<Model> model_;
  std::optional<Outputs> outputs_;
};

}  // namespace tonnage::torch_worker
