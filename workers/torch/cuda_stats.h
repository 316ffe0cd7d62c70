// SPDX-License-Identifier: Apache-2.0
// GpuStats of libtorch's CUDA caching allocator. Compiled where CUDA's headers are, linked where libtorch was
// built with CUDA. Not run on a GPU yet.
#pragma once

#include <memory>

#include "torch/gpu_stats.h"

namespace tonnage::torch_worker {

std::unique_ptr<GpuStats> make_cuda_stats(int device);

}  // namespace tonnage::torch_worker
