// SPDX-License-Identifier: Apache-2.0
// Why a load or a batch failed, for a runtime whose allocator has a meter: over_grant (the allocator
// refused) > pressure (malloc or operator new failed inside the grant) > what the runtime says of itself.
// Pure.
#pragma once

#include "base/status.h"
#include "kit/memory_meter.h"
#include "kit/runtime.h"
#include "wire/load_doc.h"

namespace tonnage::kit {

// `said` by the runtime after meter.begin(); its reason bad_input and bad_output have kinds of their own.
RunError run_failure(const MemoryMeter& meter, const Status& said);
Status load_failure(const MemoryMeter& meter, const wire::LoadDoc& doc, const Status& said);

}  // namespace tonnage::kit
