// SPDX-License-Identifier: Apache-2.0
// OnnxRuntime: a session of ONNX Runtime behind the kit's Runtime.
//
// Promises:
//  1. A batch never holds more than its grant of tensor bytes above live(); why it failed is read from
//     the meter's flags: over_grant, pressure, else the model's own fault.
//  2. A failed run leaves nothing behind: live() is what it was, the next run works.
//  3. live() counts what the runtime packed of the weights. The others it holds by itself, as they lie in the
//     file; what it packed replaces them, so that all weights are the size of the files, or what is live.
// Options: `precision` other than fp32 is refused: the runtime's CPU operators know no bf16.
// Threads: one. Owns: the session, the outputs of the last run.
#pragma once

#include <optional>

#include "kit/memory_meter.h"
#include "kit/runtime.h"
#include "onnx/onnx_model.h"

namespace tonnage::onnx_worker {

class OnnxRuntime final : public kit::Runtime {
 public:
  explicit OnnxRuntime(kit::MemoryMeter& meter) : meter_(meter) {}

  Result<kit::Loaded> load(const wire::LoadDoc& doc) override;
  kit::RunResult run(const kit::RunView& view) override;
  void release_outputs() override { model_->release_outputs(); }
  void trim() override {}  // the session caches nothing; the kit purges malloc
  Bytes live() const override { return meter_.live(); }

 private:
  kit::MemoryMeter& meter_;
  std::optional<OnnxModel> model_;
};

}  // namespace tonnage::onnx_worker
