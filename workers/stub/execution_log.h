// SPDX-License-Identifier: Apache-2.0
// ExecutionLog: a line per executed row with the first value of the row, so that a test can prove how
// often each row was executed, not only how often it was answered.
//
// Promise: a line is in the file before the model goes on, also when the next thing it does is abort().
// Threads: one; several workers may append to one file.
#pragma once

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"
#include "kit/runtime.h"

namespace tonnage::stub {

class ExecutionLog {
 public:
  ExecutionLog() = default;  // writes nothing
  static Result<ExecutionLog> open(const std::string& path);

  void add(const kit::Tensor& first_input, std::size_t row, std::size_t rows);
  void flush();

 private:
  UniqueFd fd_;
  std::string lines_;
};

}  // namespace tonnage::stub
