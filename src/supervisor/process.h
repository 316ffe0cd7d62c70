// SPDX-License-Identifier: Apache-2.0
// ProcessPort: one worker process as the supervisor sees it. The real one forks and speaks the wire
// (supervisor/child_process.h); tests use testkit::FakeProcess on a manual loop.
//
// Promises of a real child: started from the loop's thread (PDEATHSIG follows the thread), with an
// environment built from empty; it dies with the front; on_exit comes once, last, by pidfd.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/function.h"
#include "base/loop.h"
#include "base/status.h"
#include "memory/reading.h"
#include "wire/channel.h"

namespace tonnage::supervisor {

struct ExitReason {
  enum class Kind : std::uint8_t { kStatus, kSignal, kMemoryLimit, kWatchdog, kStopped, kProtocol };
  Kind kind = Kind::kStatus;
  int code = 0;  // exit status or signal number
  std::string to_string() const;
};

struct ProcessEvents {
  UniqueFunction<void(wire::Packet)> on_packet;
  // The worker sent something that is not a message, or closed its end and did not exit.
  UniqueFunction<void(Status)> on_bad_packet;
  UniqueFunction<void(ExitReason)> on_exit;
};

class ProcessPort {
 public:
  virtual ~ProcessPort() = default;  // kills and reaps what still runs; no callback afterwards
  virtual Status send(const wire::Message& message, std::span<const int> fds) = 0;
  virtual void kill() = 0;  // SIGKILL; on_exit follows, nothing else does
  virtual pid_t pid() const = 0;
  virtual Result<memory::ProcessReading> reading() const = 0;
  // From now on reading().resident_peak tells about the time from now on.
  virtual Status reset_resident_peak() = 0;
  virtual Status limit_data(Bytes limit) = 0;  // RLIMIT_DATA by prlimit
};

struct LaunchCommand {
  std::string program{};  // a path; not searched for
  std::vector<std::string> arguments{};
  std::vector<std::pair<std::string, std::string>> environment{};  // the whole of it
  // A folder of its own is made in here, named to the process as TMPDIR and removed when it is gone;
  // empty: none.
  std::string scratch_root{};
  bool idle_priority = false;  // SCHED_IDLE
};

class ProcessFactory {
 public:
  virtual ~ProcessFactory() = default;
  virtual Result<std::unique_ptr<ProcessPort>> start(const LaunchCommand& command, ProcessEvents events) = 0;
};

}  // namespace tonnage::supervisor
