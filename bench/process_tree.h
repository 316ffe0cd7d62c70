// SPDX-License-Identifier: Apache-2.0
// The memory of a process and all its descendants, as the kernel tells it: anonymous resident bytes of
// each process, and the allocated blocks of every memfd any of them holds, each file once.
// Reading the kernel's files is the whole cost, so between two listings (every twentieth reading) a process
// is asked through a descriptor that stays open (statm), and memfds are looked for anew only when the
// resident file or shared pages of a process grew.
// Threads: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace tonnage::bench {

struct ProcessUse {
  std::string name;
  std::uint64_t rss_anon = 0;
  std::uint64_t rss_mapped = 0;  // file and shared pages
  std::uint64_t highest_rss_anon = 0;
  std::uint64_t vm_hwm = 0;  // the kernel's own high-water mark, files included
};

struct Use {
  std::uint64_t anonymous = 0;
  std::uint64_t shared = 0;
  std::uint64_t total() const { return anonymous + shared; }
};

// Name and VmHWM of /proc/PID/status; resident pages of /proc/PID/statm. False when there is no process.
bool parse_status(std::string_view text, ProcessUse& into);
bool parse_statm(std::string_view text, std::uint64_t page_bytes, ProcessUse& into);

class ProcessTree {
 public:
  explicit ProcessTree(pid_t root);

  Use read();
  const std::map<pid_t, ProcessUse>& processes() const { return processes_; }

 private:
  struct Descriptor {
    pid_t pid;
    int fd;
    std::uint64_t inode;
  };
  void find_processes();
  void add_with_children(pid_t pid, std::vector<pid_t>& into) const;
  void find_descriptors();
  std::uint64_t shared_bytes();

  pid_t root_;
  std::uint64_t page_bytes_;
  std::vector<pid_t> alive_;
  std::map<pid_t, UniqueFd> statm_;
  std::map<pid_t, ProcessUse> processes_;  // the dead stay, with their marks
  std::vector<Descriptor> descriptors_;
  std::uint64_t readings_ = 0;
  std::uint64_t shared_ = 0;  // allocated blocks; asked again when mapped pages changed
};

}  // namespace tonnage::bench
