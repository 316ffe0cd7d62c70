// SPDX-License-Identifier: Apache-2.0
// CountingAllocator: what the sessions of one environment allocate on the CPU is counted by a meter.
//
// Promises:
//  1. Outputs, activations and prepacked weights pass through it. Weights as they lie in the file do not:
//     the runtime keeps those itself.
//  2. A refusal throws through the runtime, which ends the run with a status and stays usable; a nullptr
//     would crash it. Why is read from the meter's flags.
// Threads: any. Must outlive the environment and every tensor made with it.
#pragma once

#include <memory>

#include "base/status.h"
#include "kit/memory_meter.h"
#include "onnx/ort.h"

struct OrtEnv;

namespace tonnage::onnx_worker {

class CountingAllocator {
 public:
  // Sessions of `env` use it when they are told `session.use_env_allocators`.
  static Result<CountingAllocator> install(const Ort& ort, OrtEnv* env, kit::MemoryMeter& meter);
  CountingAllocator(CountingAllocator&&) noexcept;
  CountingAllocator& operator=(CountingAllocator&&) noexcept;
  ~CountingAllocator();

 private:
  struct State;
  explicit CountingAllocator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::onnx_worker
