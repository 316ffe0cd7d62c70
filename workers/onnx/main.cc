// SPDX-License-Identifier: Apache-2.0
// tonnage-worker-onnx: one ONNX model in one process, started by `tonnage serve`.
#include "kit/malloc_watch.h"
#include "kit/serve.h"
#include "onnx/onnx_runtime.h"

// Read by jemalloc before main. One arena: the worker's one thread allocates nearly everything.
// retain:false: RLIMIT_DATA counts address space, so what is free must be unmapped, not kept for later.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,dirty_decay_ms:5000,muzzy_decay_ms:0,retain:false";
}

int main() {
  static constinit tonnage::kit::MemoryMeter meter;
  (void)tonnage::kit::watch_malloc(meter);  // without jemalloc only operator new is watched
  tonnage::onnx_worker::OnnxRuntime runtime(meter);
  return tonnage::kit::serve_from_environment(runtime);
}
