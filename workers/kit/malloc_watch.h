// SPDX-License-Identifier: Apache-2.0
// Flags pressure on a meter whenever malloc cannot get memory from the kernel, whoever called it: operator
// new, or a library in C that turns it into an error text of its own (oneDNN).
//
// Promises: classification stays by flag: no exception type or text is read. Without jemalloc (sanitizers)
// only operator new is watched; false then. Before threads; once per process; the meter outlives all.
#pragma once

#include "kit/memory_meter.h"

namespace tonnage::kit {

bool watch_malloc(MemoryMeter& meter);

}  // namespace tonnage::kit
