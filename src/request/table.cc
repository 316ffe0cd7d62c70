// SPDX-License-Identifier: Apache-2.0
#include "request/table.h"

#include <limits>

namespace tonnage::request {

RequestId Table::add(Request request) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.push_back(Slot{1, nullptr});  // a default RequestId has generation 0 and finds nothing
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.request = std::make_unique<Request>(std::move(request));
  ++size_;
  return {index, slot.generation};
}

Request* Table::find(RequestId id) {
  if (id.index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[id.index];
  return slot.generation == id.generation ? slot.request.get() : nullptr;
}

std::optional<Request> Table::remove(RequestId id) {
  if (find(id) == nullptr) return std::nullopt;
  Slot& slot = slots_[id.index];
  const std::unique_ptr<Request> request = std::move(slot.request);
  --size_;
  // A slot whose generations are used up is never used again: ids stay unique for ever.
  if (slot.generation++ < std::numeric_limits<std::uint32_t>::max()) free_.push_back(id.index);
  return std::move(*request);
}

std::vector<RequestId> Table::ids() const {
  std::vector<RequestId> all;
  all.reserve(size_);
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].request != nullptr) all.push_back({i, slots_[i].generation});
  }
  return all;
}

}  // namespace tonnage::request
