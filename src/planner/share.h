// SPDX-License-Identifier: Apache-2.0
// How much of its workers' time a model can count on beside others that have work: what the arbiter will
// give it in the long run, for predicting waits.
// Promises: in (0, 1]; who needs less than its weight gives the rest to the others.
// Threads: any. Cannot fail.
#pragma once

#include <cstdint>
#include <vector>

namespace tonnage::planner {

struct Sharer {
  double weight = 1.0;
  std::uint32_t tokens = 1;  // compute tokens that all its workers would hold at once
};

// Of the first one, on a device of `tokens`.
double share_of_first(std::vector<Sharer> sharers, std::uint32_t tokens);

}  // namespace tonnage::planner
