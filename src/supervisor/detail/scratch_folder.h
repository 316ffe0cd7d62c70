// SPDX-License-Identifier: Apache-2.0
// ScratchFolder: a folder for one process, removed with everything in it when this object goes away.
//
// Promises: only its owner may enter it. It is locked while this object lives, and whoever makes the
// next one in the same root removes those that nobody locks: what a killed front left behind.
// Threads: one. Owns: the folder. Fails with: unavailable/no_scratch.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"

namespace tonnage::supervisor::detail {

class ScratchFolder {
 public:
  ScratchFolder() = default;  // none
  static Result<ScratchFolder> make(const std::string& root);
  ScratchFolder(ScratchFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

}  // namespace tonnage::supervisor::detail
