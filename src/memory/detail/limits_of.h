// SPDX-License-Identifier: Apache-2.0
// detect_limits() with the file system's magic as a parameter.
#pragma once

#include "memory/detail/cgroup.h"
#include "memory/limits.h"

namespace tonnage::memory::detail {

Result<std::vector<DetectedLimit>> detect_limits(const std::string& root, const MagicReader& magic);
// The file that counts kills for memory, or "".
std::string oom_kill_file(const std::string& root, const MagicReader& magic);

}  // namespace tonnage::memory::detail
