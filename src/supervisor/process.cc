// SPDX-License-Identifier: Apache-2.0
#include "supervisor/process.h"

#include <fmt/format.h>

#include <cstring>

namespace tonnage::supervisor {

std::string ExitReason::to_string() const {
  switch (kind) {
    case Kind::kStatus: return fmt::format("it exited with status {}", code);
    case Kind::kSignal: return fmt::format("it was ended by signal {} ({})", code, ::strsignal(code));
    case Kind::kMemoryLimit: return "the kernel killed it for memory";
    case Kind::kWatchdog: return "it was killed by its watchdog";
    case Kind::kStopped: return "it was stopped";
    case Kind::kProtocol: return "it was killed because it broke the protocol";
  }
  return "it ended";
}

}  // namespace tonnage::supervisor
