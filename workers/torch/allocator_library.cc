// SPDX-License-Identifier: Apache-2.0
// libtonnage_torch_allocator.so: the counting allocator for a process whose main() is not ours, by a C
// interface (python/tonnage/native/meter.py). Load it after torch, install it before the first tensor.
#include <torch/version.h>

#include <cstdint>

#include "kit/memory_meter.h"
#include "kit/process_memory.h"
#include "torch/counting_allocator.h"

namespace {

constinit tonnage::kit::MemoryMeter meter;

}  // namespace

extern "C" {

// Of the torch that this was built for: its allocator interface is no stable one.
const char* tonnage_torch_version() { return TORCH_VERSION; }
void tonnage_torch_install() { tonnage::torch_worker::install_counting_allocator(meter); }
void tonnage_torch_begin(std::uint64_t grant) { meter.begin(tonnage::Bytes(grant)); }
void tonnage_torch_end() { meter.end(); }
std::uint64_t tonnage_torch_live() { return meter.live().count(); }
std::uint64_t tonnage_torch_peak() { return meter.peak().count(); }
// Zero without a refusal.
std::uint64_t tonnage_torch_needed() { return meter.needed().count(); }
int tonnage_torch_pressure() { return meter.pressure() ? 1 : 0; }
// What malloc holds resident, and what of it is allocated and not freed.
void tonnage_torch_heap(std::uint64_t* resident, std::uint64_t* used) {
  const tonnage::kit::Heap heap = tonnage::kit::read_heap();
  *resident = heap.resident.count();
  *used = heap.used.count();
}
void tonnage_torch_purge() { tonnage::kit::purge_malloc(); }

}  // extern "C"
