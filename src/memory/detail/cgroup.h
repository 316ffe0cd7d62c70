// SPDX-License-Identifier: Apache-2.0
// Where this process's cgroups lie, v1 (one per controller) or v2.
//
// A folder is believed to be a cgroup only when its file system's magic says so: a folder of that
// name, or a mkdir that worked, proves nothing.
// Source: cgroups(7), proc(5) (mountinfo). Threads: any.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonnage::memory::detail {

// f_type of statfs(2), or nothing. A parameter, so that tests can put a tree of plain files there.
using MagicReader = std::function<std::optional<long>(const std::string& path)>;
std::optional<long> read_magic(const std::string& path);

struct Cgroup {
  int version = 2;
  std::string mount;   // mount point
  std::string folder;  // of the process itself, at or below `mount`

  // `folder` and every folder above it, up to the mount point.
  std::vector<std::string> chain() const;
};

// `controller`: "memory", "cpu".
std::vector<Cgroup> find_cgroups(const std::string& root, std::string_view controller,
                                 const MagicReader& magic);

// Contents of a small file; nothing when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);
// "key 123" among lines, or the whole text when `key` is empty. "max" and what is above 2^62 (the
// kernel's word for no limit in v1) are nothing.
std::optional<std::uint64_t> read_number(std::string_view text, std::string_view key);

}  // namespace tonnage::memory::detail
