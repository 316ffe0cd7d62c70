// SPDX-License-Identifier: Apache-2.0
#include "memory/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <thread>

#include "memory/detail/limits_of.h"

namespace tonnage::memory {
namespace detail {
namespace {

// memory.high is no wall, but a process above it is slowed to a crawl: as good as a limit.
constexpr std::string_view kV2Limits[] = {"memory.max", "memory.high"};
constexpr std::string_view kV1Limits[] = {"memory.limit_in_bytes"};
constexpr std::array<std::string_view, 2> kV1Quota = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
constexpr std::array<std::string_view, 2> kV2Quota = {"cpu.max", ""};

std::span<const std::string_view> limit_files(int version) {
  return version == 1 ? std::span<const std::string_view>(kV1Limits)
                      : std::span<const std::string_view>(kV2Limits);
}

void add_cgroup_limits(const Cgroup& group, std::vector<DetectedLimit>& limits) {
  for (const std::string& folder : group.chain()) {
    for (const std::string_view name : limit_files(group.version)) {
      const std::string path = fmt::format("{}/{}", folder, name);
      const auto text = read_small_file(path);
      if (!text) continue;
      if (const auto value = read_number(*text, "")) {
        limits.push_back({fmt::format("cgroup v{} {}", group.version, path), Bytes(*value)});
      }
    }
  }
}

Result<Bytes> total_memory(const std::string& root) {
  const std::string path = root == "/" ? "/proc/meminfo" : root + "/proc/meminfo";
  const auto text = read_small_file(path);
  constexpr std::string_view kKey = "MemTotal:";
  if (text) {
    if (const auto at = text->find(kKey); at != std::string::npos) {
      const auto digits = text->find_first_of("0123456789", at);
      if (digits != std::string::npos) {
        if (const auto value = read_number(std::string_view(*text).substr(digits), "")) return kib(*value);
      }
    }
  }
  return internal("no_memory_limit", path + " has no MemTotal");
}

}  // namespace

Result<std::vector<DetectedLimit>> detect_limits(const std::string& root, const MagicReader& magic) {
  TONNAGE_ASSIGN(const Bytes total, total_memory(root));
  std::vector<DetectedLimit> limits{{"MemTotal", total}};
  for (const Cgroup& group : find_cgroups(root, "memory", magic)) add_cgroup_limits(group, limits);
  std::ranges::stable_sort(limits, {}, &DetectedLimit::limit);
  return limits;
}

// Cores that the folder's quota pays for: "50000 100000" or "max 100000" in v2; in v1 two files, and -1
// is no limit.
std::optional<double> quota_of(int version, const std::string& folder) {
  std::string text;
  for (const std::string_view file : version == 1 ? kV1Quota : kV2Quota) {
    if (!file.empty()) text += read_small_file(fmt::format("{}/{}", folder, file)).value_or("") + " ";
  }
  std::istringstream numbers(text);
  double quota = 0;
  double period = 0;
  if (!(numbers >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

DetectedCores detect_cores(std::uint32_t allowed, const std::string& root, const MagicReader& magic) {
  DetectedCores found{"the cores that it may run on", std::max(1U, allowed)};
  for (const Cgroup& group : find_cgroups(root, "cpu", magic)) {
    for (const std::string& folder : group.chain()) {
      const auto quota = quota_of(group.version, folder);
      if (!quota || *quota >= found.cores) continue;
      found = {fmt::format("cgroup v{} {}", group.version, folder),
               std::max(1U, static_cast<std::uint32_t>(*quota))};
    }
  }
  return found;
}

std::string oom_kill_file(const std::string& root, const MagicReader& magic) {
  for (const Cgroup& group : find_cgroups(root, "memory", magic)) {
    const std::string path = group.folder + (group.version == 1 ? "/memory.oom_control" : "/memory.events");
    const auto text = read_small_file(path);
    if (text && read_number(*text, "oom_kill")) return path;
  }
  return {};
}

}  // namespace detail

Result<std::vector<DetectedLimit>> detect_limits(const std::string& root) {
  return detail::detect_limits(root, detail::read_magic);
}

DetectedCores detect_cores(const std::string& root) {
  return detail::detect_cores(std::thread::hardware_concurrency(), root, detail::read_magic);
}

Bytes budget_from(Bytes explicit_memory, const std::vector<DetectedLimit>& limits, double headroom) {
  if (explicit_memory > Bytes()) return explicit_memory;
  TONNAGE_CHECK(!limits.empty(), "a budget needs a detected limit");
  return scale(limits.front().limit, 1.0 - headroom);
}

OomKillCounter::OomKillCounter(const std::string& root)
    : file_(detail::oom_kill_file(root, detail::read_magic)) {}

std::optional<std::uint64_t> OomKillCounter::read() const {
  if (file_.empty()) return std::nullopt;
  const auto text = detail::read_small_file(file_);
  return text ? detail::read_number(*text, "oom_kill") : std::nullopt;
}

}  // namespace tonnage::memory
