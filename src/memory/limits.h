// SPDX-License-Identifier: Apache-2.0
// How much memory this machine, container or cgroup lets us have, and how many cores.
//
// Promises: the smallest limit that was *detected* (file system magic and memory.* files of the
// process's own path, cgroup v1 and v2, and MemTotal), each with its source; never a guess.
// Source: cgroups(7), Documentation/admin-guide/cgroup-{v1,v2}. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace tonnage::memory {

struct DetectedLimit {
  std::string source;  // "cgroup v2 /sys/fs/cgroup/app/memory.max", "MemTotal"
  Bytes limit;
};

// All limits found, smallest first; never empty on Linux. `root` is "/" except in tests.
Result<std::vector<DetectedLimit>> detect_limits(const std::string& root = "/");

// (1 − headroom) × smallest, or `explicit_memory` literally when it is above zero.
Bytes budget_from(Bytes explicit_memory, const std::vector<DetectedLimit>& limits, double headroom = 0.20);

struct DetectedCores {
  std::string source;  // "cgroup v2 /sys/fs/cgroup/app"
  std::uint32_t cores = 1;
};

// The cores that this process may run on, or fewer by the CPU quota of a cgroup. A quota is rounded
// down: a thread more than it pays for is stopped in the middle of each period, and a batch with it.
DetectedCores detect_cores(const std::string& root = "/");

// How many processes of our own cgroup the kernel has killed for memory so far (memory.events or
// memory.oom_control). Nothing where this process is in no memory cgroup that counts them.
class OomKillCounter {
 public:
  explicit OomKillCounter(const std::string& root = "/");
  std::optional<std::uint64_t> read() const;

 private:
  std::string file_;  // empty: none
};

}  // namespace tonnage::memory
