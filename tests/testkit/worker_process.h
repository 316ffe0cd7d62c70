// SPDX-License-Identifier: Apache-2.0
// WorkerProcess: a real worker program on a real socket pair, for tests that play the front.
// Include it only where tonnage_wire is linked.
#pragma once

#include <signal.h>
#include <spawn.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/bug.h"
#include "testkit/await.h"
#include "testkit/paths.h"
#include "wire/channel.h"

namespace tonnage::testkit {

class WorkerProcess {
 public:
  explicit WorkerProcess(const std::vector<std::string>& command) : WorkerProcess(command, make_ends()) {}
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    await_exit(pid_);
  }

  wire::Channel& channel() { return channel_; }
  pid_t pid() const { return pid_; }

  // The next packet, or what ended the conversation.
  Result<wire::Packet> next() {
    await_readable(channel_.fd(), "a worker said nothing for 60 s");
    return channel_.receive();
  }
  void hang_up() { channel_ = wire::Channel(UniqueFd()); }
  // Exit status, or 128 + signal.
  int exit_status() { return await_exit(std::exchange(pid_, -1)); }

 private:
  using Ends = std::pair<wire::Channel, UniqueFd>;
  static Ends make_ends() { return wire::Channel::make_pair().value(); }

  WorkerProcess(const std::vector<std::string>& command, Ends ends) : channel_(std::move(ends.first)) {
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::string variable = "TONNAGE_WIRE_FD=3";
    const std::array<char*, 2> environment = {variable.data(), nullptr};
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends.second.get(), 3);
    const int error =
        ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    TONNAGE_CHECK(error == 0, "the worker program could not be started");
  }

  wire::Channel channel_;
  pid_t pid_ = -1;
};

}  // namespace tonnage::testkit
