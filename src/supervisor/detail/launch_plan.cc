// SPDX-License-Identifier: Apache-2.0
#include "supervisor/detail/launch_plan.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <limits>

namespace tonnage::supervisor::detail {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

LaunchPlan::LaunchPlan(const LaunchCommand& command) : idle_priority_(command.idle_priority) {
  arguments_.push_back(command.program);
  arguments_.insert(arguments_.end(), command.arguments.begin(), command.arguments.end());
  for (const auto& [name, value] : command.environment) environment_.push_back(name + "=" + value);
  environment_.push_back("TONNAGE_WIRE_FD=" + std::to_string(kWorkerSocket));
  argv_ = pointers_to(arguments_);
  envp_ = pointers_to(environment_);
}

void LaunchPlan::become(int socket, int null_input, pid_t parent) const {
  ::setpgid(0, 0);  // a Ctrl-C at the front's terminal is not for workers
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that died before prctl sends no signal any more; its place is then taken by another.
  if (::getppid() != parent) ::_exit(kParentIsGone);

  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // ignored signals stay ignored over exec, handled ones do not
  if (idle_priority_) {
    const sched_param param{};
    ::sched_setscheduler(0, SCHED_IDLE, &param);
  }

  ::dup2(null_input, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // what a model prints is log, never an answer
  if (socket == kWorkerSocket) {
    ::fcntl(socket, F_SETFD, 0);
  } else {
    ::dup2(socket, kWorkerSocket);
  }
  ::close_range(kWorkerSocket + 1, std::numeric_limits<unsigned>::max(), 0);
  ::execve(argv_.front(), argv_.data(), envp_.data());
  ::_exit(kCannotExec);
}

}  // namespace tonnage::supervisor::detail
