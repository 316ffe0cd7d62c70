// SPDX-License-Identifier: Apache-2.0
// What the kernel says: the truth that the ledger must agree with.
// Source: proc(5), /proc/PID/status. Threads: any.
#pragma once

#include <sys/types.h>

#include "base/bytes.h"
#include "base/status.h"

namespace tonnage::memory {

struct ProcessReading {
  Bytes anonymous;        // RssAnon
  Bytes file;             // RssFile
  Bytes shared;           // RssShmem
  Bytes resident_peak;    // VmHWM (all resident, since start)
  Bytes data;             // VmData: what RLIMIT_DATA limits
};

// Error: not_found/no_process.
Result<ProcessReading> read_process(pid_t pid);
// Parsing alone, for tests. Error: internal/bad_status.
Result<ProcessReading> parse_status(std::string_view status_file);

}  // namespace tonnage::memory
