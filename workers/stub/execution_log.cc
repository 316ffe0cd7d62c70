// SPDX-License-Identifier: Apache-2.0
#include "stub/execution_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "stub/elements.h"

namespace tonnage::stub {

Result<ExecutionLog> ExecutionLog::open(const std::string& path) {
  ExecutionLog log;
  if (path.empty()) return log;
  log.fd_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.fd_) {
    return invalid("bad_option", fmt::format("execution_log = '{}': {}", path, std::strerror(errno)));
  }
  return log;
}

void ExecutionLog::add(const kit::Tensor& first_input, std::size_t row, std::size_t rows) {
  if (!fd_) return;
  visit_elements(first_input, [&](auto elements) {
    const std::size_t length = elements.size() / rows;
    if (length > 0) fmt::format_to(std::back_inserter(lines_), "{}", elements[row * length]);
  });
  lines_ += '\n';
}

void ExecutionLog::flush() {
  // One write per batch: appended as a whole even when several workers share the file.
  if (!lines_.empty() && ::write(fd_.get(), lines_.data(), lines_.size()) < 0) {
    fmt::print(stderr, "{{\"event\":\"execution_log_failed\",\"errno\":{}}}\n", errno);
  }
  lines_.clear();
}

}  // namespace tonnage::stub
