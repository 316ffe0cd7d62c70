// SPDX-License-Identifier: Apache-2.0
#include "model/detail/derive_length.h"

#include <algorithm>

namespace tonnage::model {
namespace {

constexpr std::uint64_t kMostUnits = 1 << 16;  // resolution of a length
constexpr std::uint32_t kColumns = 256;        // of the cost table, which is rows × columns large

}  // namespace

void derive_length(ModelSpec& spec) {
  if (spec.sizes.empty()) return;
  std::uint64_t most = 1;
  for (const SizeSpec& size : spec.sizes) most *= size.max;
  spec.positions_per_unit = std::max<std::uint64_t>(1, (most + kMostUnits - 1) / kMostUnits);
  spec.max_length = spec.length_of(spec.largest_size());
  spec.batching.pad_multiple = (spec.max_length + kColumns - 1) / kColumns;
  spec.batching.long_above = spec.max_length;  // one lane: what is large is told by predicted time
}

}  // namespace tonnage::model
