// SPDX-License-Identifier: Apache-2.0
#include "planner/share.h"

#include <algorithm>

namespace tonnage::planner {

double share_of_first(std::vector<Sharer> sharers, std::uint32_t tokens) {
  const Sharer first = sharers.front();
  // Whoever needs least for its weight is full first; what it leaves is for those behind it.
  std::ranges::sort(sharers, {}, [](const Sharer& s) { return s.tokens / s.weight; });
  double left = tokens;
  double weights = 0;
  for (const Sharer& sharer : sharers) weights += sharer.weight;
  for (const Sharer& sharer : sharers) {
    const double level = left / weights;
    if (sharer.tokens > level * sharer.weight) {
      return std::min(1.0, level * first.weight / std::max(first.tokens, 1U));
    }
    left -= sharer.tokens;
    weights -= sharer.weight;
  }
  return 1.0;
}

}  // namespace tonnage::planner
