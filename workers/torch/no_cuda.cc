// SPDX-License-Identifier: Apache-2.0
#include "torch/cuda_stats.h"

namespace tonnage::torch_worker {

Result<std::unique_ptr<GpuStats>> make_cuda_stats(int device) {
  return Status(Code::kNotFound, "no_cuda",
                "device cuda:" + std::to_string(device) +
                    " was asked for, and this worker was built without CUDA: it needs CUDA's headers and a "
                    "PyTorch with CUDA (TONNAGE_TORCH_DIR) when it is built");
}

}  // namespace tonnage::torch_worker
