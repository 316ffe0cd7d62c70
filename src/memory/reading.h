// SPDX-License-Identifier: Apache-2.0
// What the kernel says: the truth that the ledger must agree with.
// Source: proc(5), /proc/PID/status. Threads: any; one at a time per ProcessReader.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tonnage::memory {

struct ProcessReading {
  Bytes anonymous;      // RssAnon
  Bytes file;           // RssFile
  Bytes shared;         // RssShmem
  Bytes resident_peak;  // VmHWM: highest of all three together, since start or reset_resident_peak()
  Bytes data;           // VmData: what RLIMIT_DATA limits
};

// Error: not_found/no_process.
Result<ProcessReading> read_process(pid_t pid);

// The same process again and again (after every batch): keeps the file open. A pid that is reused
// by another process is never read: the file belongs to the process that it was opened for.
class ProcessReader {
 public:
  // Error: not_found/no_process.
  static Result<ProcessReader> open(pid_t pid);
  Result<ProcessReading> read() const;

 private:
  explicit ProcessReader(UniqueFd status) : status_(std::move(status)) {}
  UniqueFd status_;
};

// VmHWM starts again from what is resident now. Error: not_found/no_process (also: not ours to reset).
Status reset_resident_peak(pid_t pid);
// Parsing alone, for tests. Error: internal/bad_status.
Result<ProcessReading> parse_status(std::string_view status_file);

}  // namespace tonnage::memory
