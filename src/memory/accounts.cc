// SPDX-License-Identifier: Apache-2.0
#include "memory/accounts.h"

#include <algorithm>

namespace tonnage::memory {

WorkerAccounts explain(const WorkerSeen& seen) {
  // Weights that the allocator did not count lie in malloc too, beside the tensors.
  const Bytes counted_weights = std::min(seen.weights, seen.live_baseline);
  const Bytes in_heap = seen.live + (seen.weights - counted_weights);
  WorkerAccounts out;
  out.resident = seen.resident;
  out.libraries = seen.libraries;
  out.weights = seen.weights;
  out.tensors = saturating_sub(seen.live, counted_weights);
  out.caches = saturating_sub(seen.heap, in_heap);
  out.runtime = std::min(out.caches, saturating_sub(seen.heap_used, in_heap));
  const Bytes known = out.libraries + out.weights + out.tensors + out.caches;
  out.remainder = static_cast<std::int64_t>(seen.resident.count()) - static_cast<std::int64_t>(known.count());
  return out;
}

}  // namespace tonnage::memory
