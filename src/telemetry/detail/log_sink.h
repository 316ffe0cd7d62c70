// SPDX-License-Identifier: Apache-2.0
// The thread that writes log lines, behind a bounded queue; rotates its file by size.
// Threads: push() from any; the file belongs to the sink's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "base/unique_fd.h"

namespace tonnage::telemetry {

class LogSink {
 public:
  // An empty path, or one that cannot be opened, means standard error.
  LogSink(std::string path, std::uint64_t rotate_bytes);
  ~LogSink();  // writes what is queued
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;

  void push(std::string line);

 private:
  struct Queue {
    std::vector<std::string> lines;
    std::size_t bytes = 0;
    std::uint64_t lost = 0;
    bool stop = false;
  };

  void run();
  void open_file();
  void rotate();
  void write_all(std::string_view text);

  const std::string path_;
  const std::uint64_t rotate_bytes_;
  UniqueFd file_;
  std::uint64_t file_bytes_ = 0;
  Guarded<Queue> queue_;
  std::condition_variable wake_;
  std::jthread thread_;  // last: started when everything above exists
};

}  // namespace tonnage::telemetry
