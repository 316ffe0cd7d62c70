// SPDX-License-Identifier: Apache-2.0
#include "request/request.h"

#include <algorithm>

namespace tonnage::request {

model::RowSize Request::largest_size() const {
  model::RowSize largest;
  const std::uint32_t different = lengths.empty() && sizes.size() <= 1 ? 1 : rows;
  for (std::uint32_t row = 0; row < different; ++row) {
    const model::RowSize size = row_size(row);
    for (std::size_t i = 0; i < size.at.size(); ++i) largest.at[i] = std::max(largest.at[i], size.at[i]);
  }
  return largest;
}

}  // namespace tonnage::request
