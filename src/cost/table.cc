// SPDX-License-Identifier: Apache-2.0
#include "cost/table.h"

#include <algorithm>

namespace tonnage::cost {
namespace {

// What an unmeasured shape takes: long enough never to be chosen, short enough to be added up.
constexpr Duration kUnknownTime = std::chrono::hours(1);

std::uint32_t columns_for(std::uint32_t pad_multiple, std::uint32_t max_length) {
  return max_length == 0 ? 1 : 1 + (max_length - 1) / pad_multiple;
}

}  // namespace

CostTable::CostTable(std::uint32_t max_rows, std::uint32_t pad_multiple, std::uint32_t max_length)
    : max_rows_(std::max(max_rows, 1U)),
      pad_multiple_(std::max(pad_multiple, 1U)),
      max_length_(max_length),
      columns_(columns_for(pad_multiple_, max_length)),
      grants_(std::size_t{max_rows_} * columns_, Bytes::max().count()),
      times_(std::size_t{max_rows_} * columns_, kUnknownTime.count()) {}

}  // namespace tonnage::cost
