// SPDX-License-Identifier: Apache-2.0
#include "bench/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <set>

#include "base/unique_fd.h"

namespace tonnage::bench {
namespace {

constexpr std::uint64_t kListEvery = 20;
// Growth of mapped pages from which a new segment is suspected; smaller ones are seen at the next listing.
constexpr std::uint64_t kSegment = 64 << 10;

// Small files of /proc; empty when the process is gone.
std::string read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 8192> buffer;  // NOLINT(*-member-init): filled by read
  const ssize_t got = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

template <typename F>
void for_each_number(const std::string& directory, F&& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), &::closedir);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string_view name(&entry->d_name[0]);
    int number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc()) visit(number);
  }
}

std::uint64_t kib_field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at + key.size();
  while (begin < text.size() && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
  std::uint64_t value = 0;
  std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return value * 1024;
}

}  // namespace

bool parse_status(std::string_view text, ProcessUse& into) {
  if (!text.starts_with("Name:\t")) return false;
  into.name = text.substr(6, text.find('\n') - 6);
  into.vm_hwm = std::max(into.vm_hwm, kib_field(text, "\nVmHWM:"));
  return true;
}

// Pages: size resident mapped …; what is resident and not mapped from a file or shared is anonymous.
bool parse_statm(std::string_view text, std::uint64_t page_bytes, ProcessUse& into) {
  std::array<std::uint64_t, 3> pages{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::uint64_t& field : pages) {
    const auto [stop, error] = std::from_chars(at, end, field);
    if (error != std::errc()) return false;
    at = stop + 1;
  }
  into.rss_mapped = pages[2] * page_bytes;
  into.rss_anon = pages[1] > pages[2] ? (pages[1] - pages[2]) * page_bytes : 0;
  into.highest_rss_anon = std::max(into.highest_rss_anon, into.rss_anon);
  return true;
}

ProcessTree::ProcessTree(pid_t root)
    : root_(root), page_bytes_(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) {}

void ProcessTree::add_with_children(pid_t pid, std::vector<pid_t>& into) const {
  into.push_back(pid);
  // A child belongs to the thread that forked it, so every thread is asked.
  for_each_number(fmt::format("/proc/{}/task", pid), [&](int thread) {
    const std::string children = read_file(fmt::format("/proc/{}/task/{}/children", pid, thread));
    const char* at = children.data();
    const char* const end = at + children.size();
    for (int child = 0; at < end; ++at) {
      const auto [stop, error] = std::from_chars(at, end, child);
      if (error != std::errc()) break;
      add_with_children(child, into);
      at = stop;
    }
  });
}

void ProcessTree::find_processes() {
  alive_.clear();
  add_with_children(root_, alive_);
  std::map<pid_t, UniqueFd> open;
  for (const pid_t pid : alive_) {
    parse_status(read_file(fmt::format("/proc/{}/status", pid)), processes_[pid]);
    UniqueFd known = std::move(statm_[pid]);
    open[pid] = known ? std::move(known)
                      : UniqueFd(::open(fmt::format("/proc/{}/statm", pid).c_str(), O_RDONLY | O_CLOEXEC));
  }
  statm_ = std::move(open);
}

void ProcessTree::find_descriptors() {
  descriptors_.clear();
  std::array<char, 64> link;  // NOLINT(*-member-init): filled by readlink
  for (const pid_t pid : alive_) {
    for_each_number(fmt::format("/proc/{}/fd", pid), [&](int fd) {
      const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
      const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
      const std::string_view target(link.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
      struct stat info {};
      if (target.starts_with("/memfd:") && ::stat(path.c_str(), &info) == 0) {
        descriptors_.push_back({pid, fd, info.st_ino});
      }
    });
  }
}

std::uint64_t ProcessTree::shared_bytes() {
  std::set<std::uint64_t> counted;
  std::uint64_t bytes = 0;
  for (const Descriptor& descriptor : descriptors_) {
    if (counted.contains(descriptor.inode)) continue;
    struct stat info {};
    const std::string path = fmt::format("/proc/{}/fd/{}", descriptor.pid, descriptor.fd);
    if (::stat(path.c_str(), &info) != 0 || info.st_ino != descriptor.inode) continue;
    counted.insert(descriptor.inode);
    bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  return bytes;
}

Use ProcessTree::read() {
  Use use;
  const bool list = readings_++ % kListEvery == 0;
  if (list) find_processes();
  bool look_for_segments = list;
  bool mapped_changed = list;
  for (const pid_t pid : alive_) {
    ProcessUse& process = processes_[pid];
    const std::uint64_t before = process.rss_mapped;
    std::array<char, 128> text;  // NOLINT(*-member-init): filled by pread
    const ssize_t got = ::pread(statm_[pid].get(), text.data(), text.size(), 0);
    const std::string_view line(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    if (!parse_statm(line, page_bytes_, process)) continue;
    use.anonymous += process.rss_anon;
    mapped_changed |= process.rss_mapped != before;
    look_for_segments |= process.rss_mapped >= before + kSegment;
  }
  if (look_for_segments) find_descriptors();
  if (mapped_changed) shared_ = shared_bytes();
  use.shared = shared_;
  return use;
}

}  // namespace tonnage::bench
