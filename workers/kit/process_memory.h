// SPDX-License-Identifier: Apache-2.0
// What the kernel and malloc hold for this process.
// Threads: one at a time.
#pragma once

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace tonnage::kit {

// Reads the anonymous resident bytes (RssAnon); the file stays open, because this runs per batch.
class ResidentReader {
 public:
  ResidentReader();
  Bytes read() const;  // zero where /proc cannot be read

 private:
  UniqueFd statm_;
};

// What malloc holds: of jemalloc where it is linked, else of glibc; zeros under a sanitizer.
struct Heap {
  Bytes resident{};
  Bytes used{};  // allocated and not freed
};
Heap read_heap();
// What was added since `before`. No more is in use than is resident: pages that were free before count as
// resident in both, whoever uses them now.
Heap growth_since(const Heap& before, const Heap& now);

// Gives free pages of malloc back to the kernel: jemalloc's where it is linked, else glibc's.
void purge_malloc();

}  // namespace tonnage::kit
