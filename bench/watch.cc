// SPDX-License-Identifier: Apache-2.0
// tonnage-watch PID OUT.json: the highest memory use of a process tree, read from the kernel every 10 ms
// by a process that the server does not know. Ends with the process or on SIGTERM, and then writes OUT.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/json_text.h"
#include "base/unique_fd.h"
#include "bench/process_tree.h"

namespace tonnage::bench {
namespace {

constexpr long kEveryMs = 10;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Watched {
  Use highest;  // at the moment of the highest sum
  std::uint64_t highest_shared = 0;
  std::uint64_t samples = 0;
  double seconds = 0;
};

bool write_result(const char* path, const Watched& watched, const ProcessTree& tree) {
  std::string processes;
  for (const auto& [pid, use] : tree.processes()) {
    processes += fmt::format(R"({}{{"pid":{},"name":{},"vm_hwm_bytes":{},"highest_rss_anon_bytes":{}}})",
                             processes.empty() ? "" : ",", pid, json_string(use.name), use.vm_hwm,
                             use.highest_rss_anon);
  }
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  fmt::print(file,
             R"({{"highest_use_bytes":{},"anonymous_bytes":{},"shared_bytes":{},"highest_shared_bytes":{},)"
             R"("samples":{},"seconds":{:.3f},"cpu_share":{:.4f},"processes":[{}]}})"
             "\n",
             watched.highest.total(), watched.highest.anonymous, watched.highest.shared,
             watched.highest_shared, watched.samples, watched.seconds,
             watched.seconds > 0 ? cpu_seconds() / watched.seconds : 0, processes);
  return std::fclose(file) == 0;
}

int watch(pid_t pid, const char* out) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC));
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (!process || !signals || !timer) {
    std::perror("tonnage-watch");
    return 1;
  }
  const timespec every{0, kEveryMs * 1000000};
  const itimerspec ticks{every, every};
  ::timerfd_settime(timer.get(), 0, &ticks, nullptr);

  ProcessTree tree(pid);
  Watched watched;
  const auto start = std::chrono::steady_clock::now();
  std::array<pollfd, 3> ready = {
      {{timer.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}, {process.get(), POLLIN, 0}}};
  while ((ready[1].revents | ready[2].revents) == 0) {
    const Use use = tree.read();
    if (use.total() > watched.highest.total()) watched.highest = use;
    watched.highest_shared = std::max(watched.highest_shared, use.shared);
    ++watched.samples;
    if (::poll(ready.data(), ready.size(), -1) < 0) break;
    std::uint64_t missed = 0;
    if ((ready[0].revents & POLLIN) != 0 && ::read(timer.get(), &missed, sizeof missed) < 0) break;
  }
  watched.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return write_result(out, watched, tree) ? 0 : 1;
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tonnage-watch PID OUT.json\n");
    return 2;
  }
  return tonnage::bench::watch(static_cast<pid_t>(std::atoi(argv[1])), argv[2]);
}
