// SPDX-License-Identifier: Apache-2.0
// GpuStats of libtorch's CUDA caching allocator. cuda_stats.cc is built where CUDA's headers and libtorch's
// CUDA libraries are, no_cuda.cc elsewhere. Not run on a GPU yet.
#pragma once

#include <memory>

#include "base/status.h"
#include "torch/gpu_stats.h"

namespace tonnage::torch_worker {

// Once per process, on the thread that will run the batches: from then on it works on `device`, on one
// stream of its own. Error: no_cuda (this program was built without CUDA), no_device (what the runtime says).
Result<std::unique_ptr<GpuStats>> make_cuda_stats(int device);

}  // namespace tonnage::torch_worker
