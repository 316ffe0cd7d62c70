// SPDX-License-Identifier: Apache-2.0
// What the anonymous resident bytes of a worker consist of.
//
// Promises: libraries + weights + tensors + caches + remainder = resident, always. `resident` is the
// kernel's word, read by the front; the rest is told by the worker, so all of this is telemetry and
// nothing here is ever charged. Pure.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace tonnage::memory {

// As read and told while nothing ran.
struct WorkerSeen {
  Bytes resident{};       // RssAnon
  Bytes libraries{};      // RssAnon just before the model was loaded
  Bytes weights{};        // as told when it was loaded
  Bytes live_baseline{};  // live tensor bytes when it was ready
  Bytes live{};           // live tensor bytes now
  Bytes heap{};           // resident bytes of malloc, above those before the load
  Bytes heap_used{};      // of them in use: allocated and not freed
};

struct WorkerAccounts {
  Bytes resident{};
  Bytes libraries{};
  Bytes weights{};
  Bytes tensors{};  // live ones that are no weights
  Bytes caches{};   // what the runtime keeps for itself, and free pages that malloc keeps
  Bytes runtime{};  // of the caches: in use by the runtime
  // Nobody's: stacks, compiled code; negative where counted bytes are not resident.
  std::int64_t remainder = 0;
};

WorkerAccounts explain(const WorkerSeen& seen);

}  // namespace tonnage::memory
