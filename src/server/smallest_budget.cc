// SPDX-License-Identifier: Apache-2.0
#include "server/smallest_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "memory/lease.h"

namespace tonnage::server {

Bytes SmallestBudget::total() const {
  // What loading takes is given back before the first row comes.
  return front + shared + std::max(loading, weights + base + row + envelope);
}

std::string SmallestBudget::to_string() const {
  const std::string of_length = length == 0 ? "" : fmt::format(" of length {}", length);
  return fmt::format(
      "{}: front {}, weights {} and base {} (loading them {}), shared memory {}, one row{} {}, "
      "its envelope {}",
      format_bytes(total()), format_bytes(front), format_bytes(weights), format_bytes(base),
      format_bytes(loading), format_bytes(shared), of_length, format_bytes(row), format_bytes(envelope));
}

Bytes lease_for(Bytes grant, Bytes slack, double charged_per_byte) {
  const Bytes room = memory::Lease::room_for(grant + std::max(slack, memory::kFirstSlack));
  return charged_per_byte > 1.0 ? scale(room + kib(4), charged_per_byte) : room;
}

}  // namespace tonnage::server
