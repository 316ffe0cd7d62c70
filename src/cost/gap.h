// SPDX-License-Identifier: Apache-2.0
// Gap: between two measured lengths of as many rows the program is known to change, nobody knows where.
#pragma once

#include <cstdint>

namespace tonnage::cost {

struct Gap {
  std::uint32_t rows = 0;
  std::uint32_t shorter = 0;
  std::uint32_t longer = 0;
  bool operator==(const Gap&) const = default;
};

}  // namespace tonnage::cost
