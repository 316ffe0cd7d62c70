// SPDX-License-Identifier: Apache-2.0
// detect_limits() and detect_cores() with the file system's magic as a parameter.
#pragma once

#include "memory/detail/cgroup.h"
#include "memory/limits.h"

namespace tonnage::memory::detail {

Result<std::vector<DetectedLimit>> detect_limits(const std::string& root, const MagicReader& magic);
// `allowed`: cores that the process may run on.
DetectedCores detect_cores(std::uint32_t allowed, const std::string& root, const MagicReader& magic);
// The file that counts kills for memory, or "".
std::string oom_kill_file(const std::string& root, const MagicReader& magic);

}  // namespace tonnage::memory::detail
