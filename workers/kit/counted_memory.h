// SPDX-License-Identifier: Apache-2.0
// Blocks of memory that a meter counts, for the allocator that a runtime is given.
//
// Promises:
//  1. A block carries its meter in a 64-byte header in front of the payload, so that releasing it
//     needs no global state and works at process exit, from any thread. Payloads are aligned to 64.
//  2. Counted are the bytes asked for, without header and rounding: they repeat exactly per shape.
//  3. allocate_counted() gives nullptr where the meter refuses (over_grant), or where malloc fails inside
//     the grant (pressure); the meter's flags say which.
// Threads: any. `meter` must outlive its blocks.
#pragma once

#include <cstddef>

#include "kit/memory_meter.h"

namespace tonnage::kit {

void* allocate_counted(MemoryMeter& meter, std::size_t bytes);
void release_counted(void* payload);  // of allocate_counted(); nullptr is nothing

}  // namespace tonnage::kit
