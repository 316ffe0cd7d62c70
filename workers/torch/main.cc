// SPDX-License-Identifier: Apache-2.0
// tonnage-worker-torch: one TorchScript model in one process, started by `tonnage serve`.
#include <cstdlib>

#include "kit/memory_meter.h"
#include "kit/serve.h"
#include "torch/counting_allocator.h"
#include "torch/cuda_stats.h"
#include "torch/torch_runtime.h"

// Read by jemalloc before main. One arena: the worker's one thread allocates nearly everything.
// retain:false: RLIMIT_DATA counts address space, so what is free must be unmapped, not kept for later.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,dirty_decay_ms:5000,muzzy_decay_ms:0,retain:false";
}

namespace {

// CUDA's libraries read these when they are first used, which is on a device only: modules are loaded when a
// kernel of theirs is (a context takes half as much), devices count as in nvidia-smi, and what was freed fits
// the next batch whatever its size.
void for_cuda() {
  ::setenv("CUDA_MODULE_LOADING", "LAZY", 0);      // NOLINT(concurrency-mt-unsafe): no thread yet
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);  // NOLINT(concurrency-mt-unsafe)
  constexpr const char* kNames[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};  // new, old
  for (const char* name : kNames) {
    if (std::getenv(name) != nullptr) return;  // NOLINT(concurrency-mt-unsafe)
  }
  for (const char* name : kNames)
    ::setenv(name, "expandable_segments:True", 0);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

int main() {
  // oneDNN keeps a compiled primitive per shape, outside every allocator; both of its caches are bounded
  // before torch looks (README.md). The environment that the front sets wins.
  ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64", 0);  // NOLINT(concurrency-mt-unsafe): no thread yet
  ::setenv("LRU_CACHE_CAPACITY", "64", 0);               // NOLINT(concurrency-mt-unsafe)

  for_cuda();
  static constinit tonnage::kit::MemoryMeter meter;
  tonnage::torch_worker::install_counting_allocator(meter);
  tonnage::torch_worker::TorchRuntime runtime(meter, tonnage::torch_worker::make_cuda_stats);
  return tonnage::kit::serve_from_environment(runtime);
}
