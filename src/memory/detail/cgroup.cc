// SPDX-License-Identifier: Apache-2.0
#include "memory/detail/cgroup.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace tonnage::memory::detail {
namespace {

std::string under(const std::string& root, std::string_view path) {
  return root == "/" ? std::string(path) : root + std::string(path);
}

bool names(std::string_view list, std::string_view controller) {
  return fmt::format(",{},", list).find(fmt::format(",{},", controller)) != std::string::npos;
}

// Path of this process in the hierarchy that `line` of /proc/self/cgroup describes, when it is the
// unified one (v2) or carries the controller (v1): "4:memory:/app", "0::/app".
std::optional<std::string> own_path(std::string_view line, int version, std::string_view controller) {
  const auto first = line.find(':');
  const auto second = line.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const bool matches =
      version == 2 ? line.starts_with("0::") : names(line.substr(first + 1, second - first - 1), controller);
  if (!matches) return std::nullopt;
  return std::string(line.substr(second + 1));
}

struct Mount {
  int version = 0;
  std::string root;  // which part of the hierarchy is mounted here
  std::string point;
};

std::optional<Mount> parse_mount(const std::string& line, std::string_view controller) {
  // 36 35 0:32 ROOT POINT options [optional fields] - TYPE SOURCE SUPER_OPTIONS
  std::istringstream fields(line);
  std::string id, parent, device, word;
  Mount mount;
  if (!(fields >> id >> parent >> device >> mount.root >> mount.point)) return std::nullopt;
  while (fields >> word && word != "-") {
  }
  std::string type, source, options;
  if (!(fields >> type >> source >> options)) return std::nullopt;
  const bool is_v1 = type == "cgroup" && names(options, controller);
  if (!is_v1 && type != "cgroup2") return std::nullopt;
  mount.version = is_v1 ? 1 : 2;
  return mount;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// In a container the path of /proc/self/cgroup may be the host's and not exist below the mount; the
// mount point itself is then our own cgroup.
std::string own_folder(const std::string& point, const Mount& mount, std::string path,
                       const MagicReader& magic, long expected) {
  if (mount.root != "/" && path.starts_with(mount.root)) path.erase(0, mount.root.size());
  if (path.empty() || path == "/") return point;
  const std::string folder = point + path;
  return magic(folder) == expected ? folder : point;
}

}  // namespace

std::optional<long> read_magic(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return std::nullopt;
  return static_cast<long>(info.f_type);
}

std::optional<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::uint64_t> read_number(std::string_view text, std::string_view key) {
  constexpr std::uint64_t kNoLimit = 1ULL << 62U;
  if (!key.empty()) {
    const std::string start = std::string(key) + " ";
    std::size_t at = text.starts_with(start) ? 0 : text.find("\n" + start);
    if (at == std::string_view::npos) return std::nullopt;
    if (at != 0 || !text.starts_with(start)) ++at;
    text.remove_prefix(at + start.size());
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value >= kNoLimit) return std::nullopt;
  return value;
}

std::vector<std::string> Cgroup::chain() const {
  std::vector<std::string> folders{folder};
  while (folders.back().size() > mount.size()) {
    folders.push_back(folders.back().substr(0, folders.back().rfind('/')));
  }
  return folders;
}

std::vector<Cgroup> find_cgroups(const std::string& root, std::string_view controller,
                                 const MagicReader& magic) {
  std::vector<Cgroup> found;
  const auto mounts = read_small_file(under(root, "/proc/self/mountinfo"));
  const auto paths = read_small_file(under(root, "/proc/self/cgroup"));
  if (!mounts || !paths) return found;
  for (const std::string& line : lines_of(*mounts)) {
    const auto mount = parse_mount(line, controller);
    if (!mount) continue;
    const long expected = mount->version == 1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC;
    const std::string point = under(root, mount->point);
    if (magic(point) != expected) continue;
    for (const std::string& entry : lines_of(*paths)) {
      if (const auto path = own_path(entry, mount->version, controller)) {
        found.push_back({mount->version, point, own_folder(point, *mount, *path, magic, expected)});
        break;
      }
    }
  }
  return found;
}

}  // namespace tonnage::memory::detail
