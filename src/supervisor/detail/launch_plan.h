// SPDX-License-Identifier: Apache-2.0
// Everything that a child needs between fork and exec, made before the fork: in the child of a
// process with threads nothing may allocate or lock (signal-safety(7)).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "supervisor/process.h"

namespace tonnage::supervisor::detail {

inline constexpr int kWorkerSocket = 3;  // the worker's end of the channel
inline constexpr int kCannotExec = 127;  // as shells say
inline constexpr int kParentIsGone = 126;

class LaunchPlan {
 public:
  explicit LaunchPlan(const LaunchCommand& command);
  LaunchPlan(const LaunchPlan&) = delete;
  LaunchPlan& operator=(const LaunchPlan&) = delete;

  // In the child, right after fork. `socket` and `null_input` are descriptors above 2.
  [[noreturn]] void become(int socket, int null_input, pid_t parent) const;

 private:
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  std::vector<char*> argv_;
  std::vector<char*> envp_;
  bool idle_priority_;
};

}  // namespace tonnage::supervisor::detail
