// SPDX-License-Identifier: Apache-2.0
// Why a load or a batch failed, for a runtime whose tensors are counted: sticky_device (it works no more,
// whatever else was refused: no matter of memory) > over_grant (the allocator refused) > pressure (memory
// inside the grant was not there) > what the runtime says of itself.
#pragma once

#include "base/status.h"
#include "kit/runtime.h"
#include "kit/tensor_memory.h"
#include "wire/load_doc.h"

namespace tonnage::kit {

// `said` by the runtime after memory.begin(); its reason bad_input and bad_output have kinds of their own.
RunError run_failure(const TensorMemory& memory, const Status& said);
Status load_failure(const TensorMemory& memory, const wire::LoadDoc& doc, const Status& said);

}  // namespace tonnage::kit
