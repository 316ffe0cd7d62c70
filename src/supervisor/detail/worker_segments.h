// SPDX-License-Identifier: Apache-2.0
// The shared memory of one worker process: input slots, the output region and the buffer into which
// outputs are copied. Made anew for every process, so that nothing a dead one left behind (a child of
// its own with the old mapping) can write into a living one's batch.
//
// Owns: segments and their charge. Fails with: over_budget, shared_memory.
#pragma once

#include <array>
#include <string>

#include "memory/budget.h"
#include "tensor/buffer.h"
#include "wire/messages.h"
#include "wire/segment.h"

namespace tonnage::supervisor::detail {

class WorkerSegments {
 public:
  static Bytes cost(Bytes slot_bytes, Bytes output_bytes);
  static Result<WorkerSegments> create(const std::string& name, Bytes slot_bytes, Bytes output_bytes,
                                       memory::Account& account);

  wire::Segment& slot(std::uint32_t i) { return slots_.at(i); }
  const wire::Segment& output() const { return output_; }
  Bytes charged() const { return slot_charge_.amount() + output_charge_.amount(); }

  // Charged before it is made; on an error everything stays as it was.
  Status replace_output(const std::string& name, Bytes output_bytes);
  // Copies the first `size` bytes of the output region; valid until the next copy or replacement.
  Result<ByteView> copy_outputs(Bytes size);

 private:
  std::array<wire::Segment, wire::kInputSlots> slots_;
  wire::Segment output_;
  tensor::Buffer copy_;
  memory::Charge slot_charge_;
  memory::Charge output_charge_;
};

}  // namespace tonnage::supervisor::detail
