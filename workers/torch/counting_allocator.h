// SPDX-License-Identifier: Apache-2.0
// install_counting_allocator: every CPU tensor of this process is counted by `meter` from now on.
//
// Promises:
//  1. Its blocks are those of kit/counted_memory.h: released at any time, from any thread.
//  2. Above the grant, allocate() throws after the meter's flag is set; so it does when malloc
//     fails inside the grant (pressure). Any malloc that the kernel refuses flags pressure, too
//     (kit/malloc_watch.h).
// Call once, before any tensor exists. `meter` must live for ever. Threads: any afterwards.
#pragma once

#include "kit/memory_meter.h"

namespace tonnage::torch_worker {

void install_counting_allocator(kit::MemoryMeter& meter);

}  // namespace tonnage::torch_worker
