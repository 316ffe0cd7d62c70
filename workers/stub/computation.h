// SPDX-License-Identifier: Apache-2.0
// What the stub's models compute: echo, a mean under a mask, a sum of ids.
// Threads: one.
#pragma once

#include <vector>

#include "base/status.h"
#include "kit/runtime.h"
#include "stub/allocator.h"
#include "stub/options.h"

namespace tonnage::stub {

// The inputs and outputs for what the front said; its inputs where it said any, else our own.
// Error: bad_spec, when the computation cannot be done on such inputs.
Result<wire::LoadedDoc> describe(Computation computation, const wire::LoadDoc& doc);

// Outputs; memory for them comes from `allocator` and is kept in `memory`.
std::vector<kit::Tensor> compute(Computation computation, const kit::RunView& view,
                                 CountingAllocator& allocator, std::vector<Block>& memory);

}  // namespace tonnage::stub
