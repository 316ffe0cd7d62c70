// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/worker_segments.h"

#include <algorithm>
#include <utility>

namespace tonnage::supervisor::detail {
namespace {

constexpr Bytes kPage = kib(4);

Bytes whole_pages(Bytes size) { return round_up(std::max(size, Bytes(1)), kPage); }
Bytes slots_cost(Bytes slot_bytes) { return whole_pages(slot_bytes) * wire::kInputSlots; }
// The region and the buffer for its copy.
Bytes output_cost(Bytes output_bytes) { return whole_pages(output_bytes) * 2; }

}  // namespace

Bytes WorkerSegments::cost(Bytes slot_bytes, Bytes output_bytes) {
  return slots_cost(slot_bytes) + output_cost(output_bytes);
}

Result<WorkerSegments> WorkerSegments::create(const std::string& name, Bytes slot_bytes, Bytes output_bytes,
                                              memory::Account& account) {
  WorkerSegments made;
  TONNAGE_ASSIGN(made.slot_charge_, account.charge(slots_cost(slot_bytes)));
  TONNAGE_ASSIGN(made.output_charge_, account.charge(Bytes()));
  for (wire::Segment& slot : made.slots_) {
    TONNAGE_ASSIGN(slot, wire::Segment::create(name + "/input", whole_pages(slot_bytes)));
  }
  TONNAGE_TRY(made.replace_output(name, output_bytes));
  return made;
}

Status WorkerSegments::replace_output(const std::string& name, Bytes output_bytes) {
  memory::Charge charge = output_charge_.split(Bytes());
  TONNAGE_TRY(charge.grow_to(output_cost(output_bytes)));
  TONNAGE_ASSIGN(wire::Segment segment, wire::Segment::create(name + "/output", whole_pages(output_bytes)));
  tensor::Buffer copy(whole_pages(output_bytes).size());
  std::swap(output_, segment);
  copy_ = std::move(copy);
  output_charge_ = std::move(charge);
  return Status::ok();
}

Result<ByteView> WorkerSegments::copy_outputs(Bytes size) {
  if (size > output_.size()) {
    return Status(Code::kInternal, "bad_output",
                  "the outputs reach " + std::to_string(size.count()) + " bytes into a region of " +
                      std::to_string(output_.size().count()));
  }
  const MutableByteView into = copy_.mutable_view().first(size.size());
  TONNAGE_TRY(output_.copy_out(0, into));
  return ByteView(into);
}

}  // namespace tonnage::supervisor::detail
