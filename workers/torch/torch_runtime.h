// SPDX-License-Identifier: Apache-2.0
// TorchRuntime: a model of torch behind the kit's Runtime; which kind, the route says.
//
// Promises:
//  1. A batch never holds more than its grant of tensor bytes above live(), where the model lies: on the host
//     exactly, on a device to a segment of the allocator (gpu_meter.h). Why it failed is told by what was
//     counted (kit/failure.h).
//  2. A failed run leaves nothing behind: live() is what it was, the next run works.
//  3. A converted model without held-out rows brings its own, with the answers from before.
// Options, of trace and script: `precision` (fp32, bf16, fp16), `freeze` = "true" (peak while loading: twice
// the weights), `device` (cpu, cuda:N; the fact `device` says it back). Not run on a GPU yet.
// Threads: one. Owns: the model, the outputs of the last run, the meter of a device. Fails with, beside a
// Model's: bad_load_doc, no_cuda, no_device, sticky_device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kit/memory_meter.h"
#include "kit/runtime.h"
#include "torch/gpu_meter.h"
#include "torch/model.h"

namespace tonnage::torch_worker {

class TorchRuntime final : public kit::Runtime {
 public:
  // How a device's allocator is found; called at most once, while loading.
  using OpenDevice = std::function<Result<std::unique_ptr<GpuStats>>(int device)>;

  explicit TorchRuntime(kit::MemoryMeter& host, OpenDevice open_device)
      : host_(host), open_device_(std::move(open_device)) {}

  Result<kit::Loaded> load(const wire::LoadDoc& doc) override;
  kit::RunResult run(const kit::RunView& view) override;
  void release_outputs() override { outputs_.reset(); }
  // On the host the model caches nothing of its own; the kit purges malloc.
  void trim() override {
    if (device_) device_->trim();
  }
  Bytes live() const override { return memory().live(); }
  std::optional<Bytes> reserved() const override {
    return device_ ? std::optional(device_->reserved()) : std::nullopt;
  }

 private:
  Status choose_device(const std::string& device);
  kit::TensorMemory& memory() const {
    if (device_) return *device_;
    return host_;
  }

  kit::MemoryMeter& host_;
  OpenDevice open_device_;
  std::unique_ptr<GpuStats> stats_;
  std::unique_ptr<GpuMeter> device_;  // of a model that lies on one
  std::unique_ptr<Model> model_;
  std::optional<Outputs> outputs_;
};

}  // namespace tonnage::torch_worker
