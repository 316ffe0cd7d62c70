// SPDX-License-Identifier: Apache-2.0
#include "supervisor/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "supervisor/detail/launch_plan.h"
#include "supervisor/detail/pidfd.h"
#include "supervisor/detail/scratch_folder.h"

namespace tonnage::supervisor {
namespace {

constexpr int kPacketsPerTurn = 64;
// More than a socket buffer holds: after the exit everything that was sent is read.
constexpr int kPacketsAtExit = 4096;
// A process that has closed its end is about to exit; its exit reason is worth waiting for.
constexpr Duration kCloseToExit = seconds(1);

Status no_process(std::string_view call) {
  return {Code::kUnavailable, "no_process", fmt::format("{}: {}", call, std::strerror(errno))};
}

struct Child {
  pid_t pid;
  UniqueFd pidfd;
  wire::Channel channel;
  memory::ProcessReader status;
  detail::ScratchFolder scratch;
};

class ChildProcess final : public ProcessPort {
 public:
  ChildProcess(Loop& loop, MemoryKills& memory_kills, Child child, ProcessEvents events)
      : loop_(loop), memory_kills_(memory_kills), child_(std::move(child)), events_(std::move(events)) {
    packets_ = loop_.watch_readable(child_.channel.fd(), [this] { read_packets(kPacketsPerTurn); });
    exit_ = loop_.watch_readable(child_.pidfd.get(), [this] { on_exited(); });
  }

  ~ChildProcess() override {
    if (is_reaped_) return;
    kill();
    reap();
  }

  Status send(const wire::Message& message, std::span<const int> fds) override {
    return child_.channel.send(message, fds);
  }

  void kill() override {
    if (is_reaped_) return;
    is_killed_ = true;
    packets_.reset();
    goodbye_.reset();
    signal_group();
  }

  pid_t pid() const override { return child_.pid; }
  Result<memory::ProcessReading> reading() const override { return child_.status.read(); }

  Status reset_resident_peak() override { return memory::reset_resident_peak(child_.pid); }

  Status limit_data(Bytes limit) override {
    rlimit current{};
    if (::prlimit(child_.pid, RLIMIT_DATA, nullptr, &current) != 0) return no_process("prlimit");
    // The hard limit stays: only root could raise it again.
    current.rlim_cur = std::min<rlim_t>(limit.count(), current.rlim_max);
    if (::prlimit(child_.pid, RLIMIT_DATA, &current, nullptr) != 0) return no_process("prlimit");
    return Status::ok();
  }

 private:
  // The process is not reaped, so neither its pid nor its group can belong to somebody else.
  void signal_group() {
    detail::signal_pidfd(child_.pidfd, SIGKILL);
    ::kill(-child_.pid, SIGKILL);
  }

  void read_packets(int limit) {
    const std::weak_ptr<bool> alive = alive_;
    for (int i = 0; i < limit; ++i) {
      auto packet = child_.channel.receive();
      if (packet.is_ok()) {
        events_.on_packet(std::move(packet).value());
      } else if (packet.status().reason() == "would_block") {
        return;
      } else if (packet.status().code() == Code::kUnavailable) {
        on_closed(packet.status());
        return;
      } else {
        events_.on_bad_packet(packet.status());
      }
      if (alive.expired() || !packets_) return;  // destroyed or killed by the receiver
    }
  }

  void on_closed(const Status& status) {
    packets_.reset();
    goodbye_ = loop_.call_after(kCloseToExit, [this, status] { events_.on_bad_packet(status); });
  }

  void on_exited() {
    const std::weak_ptr<bool> alive = alive_;
    if (packets_) read_packets(kPacketsAtExit);
    if (alive.expired()) return;
    packets_.reset();
    goodbye_.reset();
    exit_.reset();
    signal_group();
    const ExitReason reason = reap();
    auto on_exit = std::move(events_.on_exit);  // which may destroy this
    on_exit(reason);
  }

  ExitReason reap() {
    siginfo_t info{};
    // By number, which is ours until now: a loop makes what it watches non-blocking, and then a wait by
    // descriptor gives up on a process that has not quite ended.
    while (::waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED) != 0 && errno == EINTR) {
    }
    is_reaped_ = true;
    if (info.si_code == CLD_EXITED) return {ExitReason::Kind::kStatus, info.si_status};
    const bool is_foreign_kill = info.si_status == SIGKILL && !is_killed_;
    if (is_foreign_kill && memory_kills_.take_one()) return {ExitReason::Kind::kMemoryLimit, SIGKILL};
    return {ExitReason::Kind::kSignal, info.si_status};
  }

  Loop& loop_;
  MemoryKills& memory_kills_;
  Child child_;
  ProcessEvents events_;
  bool is_killed_ = false;
  bool is_reaped_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  // After the descriptors that they watch.
  Loop::Watch packets_;
  Loop::Watch exit_;
  Loop::Timer goodbye_;
};

}  // namespace

bool MemoryKills::take_one() {
  if (counter_.read().value_or(0) <= seen_) return false;
  ++seen_;
  return true;
}

Result<std::unique_ptr<ProcessPort>> ChildProcessFactory::start(const LaunchCommand& command,
                                                                ProcessEvents events) {
  if (::access(command.program.c_str(), X_OK) != 0) {
    return Status(Code::kUnavailable, "no_program",
                  fmt::format("{} cannot be executed: {}", command.program, std::strerror(errno)));
  }
  TONNAGE_ASSIGN(auto ends, wire::Channel::make_pair());
  const UniqueFd null_input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_input) return no_process("open /dev/null");
  TONNAGE_ASSIGN(detail::ScratchFolder scratch, detail::ScratchFolder::make(command.scratch_root));
  LaunchCommand complete = command;
  if (!scratch.path().empty()) complete.environment.emplace_back("TMPDIR", scratch.path());
  const detail::LaunchPlan plan(complete);

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return no_process("fork");
  if (pid == 0) plan.become(ends.second.get(), null_input.get(), parent);
  ::setpgid(pid, pid);  // whoever of the two is first; afterwards the group can be signalled

  UniqueFd pidfd = detail::open_pidfd(pid);
  auto status = memory::ProcessReader::open(pid);
  if (!pidfd || !status.is_ok()) {
    const Status error = pidfd ? status.status() : no_process("pidfd_open");
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return error;
  }
  return std::unique_ptr<ProcessPort>(std::make_unique<ChildProcess>(
      loop_, memory_kills_,
      Child{pid, std::move(pidfd), std::move(ends.first), std::move(status).value(), std::move(scratch)},
      std::move(events)));
}

}  // namespace tonnage::supervisor
