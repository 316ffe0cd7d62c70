// SPDX-License-Identifier: Apache-2.0
// Waiting for another process in a test, without sleeping: poll with one watchdog of 60 s, which is
// the only real clock of the tests. What does not come ends the test program.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/bug.h"
#include "base/unique_fd.h"

namespace tonnage::testkit {

inline constexpr int kWatchdogMilliseconds = 60'000;

// Returns once `fd` is readable or closed by the peer.
inline void await_readable(int fd, const char* what) {
  pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, kWatchdogMilliseconds);
  } while (ready < 0 && errno == EINTR);
  TONNAGE_CHECK(ready == 1, what);
}

// The exit status of our child `pid`, or 128 + the number of the signal that ended it. Reaps it.
inline int await_exit(pid_t pid) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  await_readable(process.get(), "a child did not end within 60 s");
  int status = 0;
  TONNAGE_CHECK(::waitpid(pid, &status, 0) == pid, "not a child of ours");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tonnage::testkit
