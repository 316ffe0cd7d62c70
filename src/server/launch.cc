// SPDX-License-Identifier: Apache-2.0
#include "server/launch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "config/environment.h"

namespace tonnage::server {
namespace {

std::string program_directory() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return ".";
  const std::string program(path.data(), static_cast<std::size_t>(length));
  return program.substr(0, program.find_last_of('/'));
}

}  // namespace

std::string worker_directory(const ServerOptions& options) {
  return options.worker_directory.empty() ? program_directory() : options.worker_directory;
}

std::string state_directory(const ServerOptions& options) {
  if (!options.state_directory.empty()) return options.state_directory;
  const auto environment = config::Environment::of_process();
  if (const auto home = environment.get("XDG_STATE_HOME"); home && !home->empty()) return *home + "/tonnage";
  if (::geteuid() == 0) return "/var/lib/tonnage";
  return environment.get("HOME").value_or("") + "/.local/state/tonnage";
}

supervisor::LaunchCommand launch_command(const model::ModelSpec& spec, const std::string& directory) {
  supervisor::LaunchCommand command;
  command.program = directory + (spec.route == "stub" ? "/tonnage-worker-stub" : "/tonnage-worker-torch");
  const std::uint32_t threads =
      spec.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : spec.threads;
  command.environment = {
      {"PATH", "/usr/bin:/bin"},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", "/tmp"},
      {"OMP_NUM_THREADS", std::to_string(threads)},
      // A waiting thread that spins loses 27 × beside one busy neighbour; one that sleeps loses 3 ×.
      {"OMP_WAIT_POLICY", "passive"},
  };
  return command;
}

}  // namespace tonnage::server
