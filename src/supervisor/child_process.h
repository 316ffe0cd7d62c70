// SPDX-License-Identifier: Apache-2.0
// ChildProcessFactory: real worker processes, by fork and exec.
//
// Promises:
//  1. A child is in a process group of its own, has the channel as descriptor 3, /dev/null as input,
//     our standard error as output, no other descriptor, and exactly the environment it was given
//     plus TONNAGE_WIRE_FD=3.
//  2. It dies with us: the kernel kills it when the thread that called start() ends, so that thread
//     is the loop's and lives as long as the server.
//  3. Packets come before on_exit; at most 64 are read per turn of the loop, so that a flood delays
//     nobody else. After kill() nothing more is read.
//  4. A kill by the kernel for lack of memory is told apart from any other SIGKILL by the counter of
//     our cgroup, where there is one. The kernel counts kills, not names: of two workers that get a
//     SIGKILL at once, the first to be reaped is taken for the victim.
//  5. What a child started in its group ends with it.
// Threads: the loop. Owns: the process until it is reaped.
// Fails with: unavailable/no_program, unavailable/no_process.
#pragma once

#include "base/loop.h"
#include "memory/limits.h"
#include "supervisor/process.h"

namespace tonnage::supervisor {

// Kills for memory in our cgroup that no worker has been told yet.
class MemoryKills {
 public:
  MemoryKills() : seen_(counter_.read().value_or(0)) {}
  bool take_one();

 private:
  memory::OomKillCounter counter_;
  std::uint64_t seen_;
};

class ChildProcessFactory final : public ProcessFactory {
 public:
  explicit ChildProcessFactory(Loop& loop) : loop_(loop) {}
  Result<std::unique_ptr<ProcessPort>> start(const LaunchCommand& command, ProcessEvents events) override;

 private:
  Loop& loop_;
  MemoryKills memory_kills_;
};

}  // namespace tonnage::supervisor
