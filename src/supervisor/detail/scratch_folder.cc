// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/scratch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace tonnage::supervisor::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "tonnage-worker-";
constexpr int kAttempts = 3;

// Without an owner: nobody else holds the lock. A folder that cannot be opened is somebody else's.
UniqueFd lock_of(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) folder.reset();
  return folder;
}

void remove_abandoned(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path();
    if (!path.filename().string().starts_with(kPrefix)) continue;
    if (const UniqueFd lock = lock_of(path.string())) {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  }
}

// Between its making and its lock, another front may have taken it for abandoned.
bool is_there(const UniqueFd& folder) {
  struct stat info {};
  return ::fstat(folder.get(), &info) == 0 && info.st_nlink > 0;
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make(const std::string& root) {
  if (root.empty()) return ScratchFolder();
  remove_abandoned(root);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = (fs::path(root) / (std::string(kPrefix) + "XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) {
      return Status(
          Code::kUnavailable, "no_scratch",
          fmt::format("{} has no room for a worker's temporary files: {}", root, std::strerror(errno)));
    }
    UniqueFd lock = lock_of(path);
    if (lock && is_there(lock)) return ScratchFolder(std::move(path), std::move(lock));
  }
  return Status(Code::kUnavailable, "no_scratch", fmt::format("somebody removes new folders in {}", root));
}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace tonnage::supervisor::detail
