// SPDX-License-Identifier: Apache-2.0
// pidfd system calls. glibc 2.36 declares them without extern "C", so C++ cannot link to its wrappers.
// Source: pidfd_open(2), pidfd_send_signal(2).
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace tonnage::supervisor::detail {

inline UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
}

inline void signal_pidfd(const UniqueFd& pidfd, int signal) {
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0U);
}

}  // namespace tonnage::supervisor::detail
