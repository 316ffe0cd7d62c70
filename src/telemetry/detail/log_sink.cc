// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detail/log_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/json_text.h"

namespace tonnage::telemetry {
namespace {

constexpr std::size_t kQueueBytes = 4u << 20;
constexpr int kKeptFiles = 3;

}  // namespace

LogSink::LogSink(std::string path, std::uint64_t rotate_bytes)
    : path_(std::move(path)), rotate_bytes_(rotate_bytes) {
  open_file();
  thread_ = std::jthread([this] { run(); });
}

LogSink::~LogSink() {
  {
    auto lock = queue_.lock();
    lock->stop = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LogSink::push(std::string line) {
  {
    auto lock = queue_.lock();
    if (lock->bytes + line.size() > kQueueBytes) {
      ++lock->lost;
      return;
    }
    lock->bytes += line.size();
    lock->lines.push_back(std::move(line));
  }
  wake_.notify_one();
}

void LogSink::run() {
  while (true) {
    std::vector<std::string> lines;
    std::uint64_t lost = 0;
    bool stop = false;
    {
      auto lock = queue_.lock();
      while (lock->lines.empty() && !lock->stop) wake_.wait(lock.native());
      lines.swap(lock->lines);
      lock->bytes = 0;
      lost = std::exchange(lock->lost, 0);
      stop = lock->stop;
    }
    for (const std::string& line : lines) write_all(line);
    if (lost > 0) write_all(fmt::format("{{\"event\":\"log_lines_lost\",\"lines\":{}}}\n", lost));
    if (stop) return;
  }
}

void LogSink::open_file() {
  if (path_.empty()) return;
  file_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  struct stat status {};
  if (!file_) {
    const std::string why = std::strerror(errno);
    write_all(fmt::format("{{\"event\":\"log_file_not_writable\",\"path\":{},\"why\":{}}}\n",
                          json_string(path_), json_string(why)));
  } else if (::fstat(file_.get(), &status) == 0) {
    file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
}

void LogSink::rotate() {
  file_.reset();
  for (int i = kKeptFiles - 1; i >= 1; --i) {
    // A missing older file is the ordinary case.
    (void)std::rename(fmt::format("{}.{}", path_, i).c_str(), fmt::format("{}.{}", path_, i + 1).c_str());
  }
  (void)std::rename(path_.c_str(), fmt::format("{}.1", path_).c_str());
  file_bytes_ = 0;
  open_file();
}

void LogSink::write_all(std::string_view text) {
  if (file_ && file_bytes_ > 0 && file_bytes_ + text.size() > rotate_bytes_) rotate();
  const int fd = file_ ? file_.get() : STDERR_FILENO;
  file_bytes_ += text.size();
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nowhere left to complain
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace tonnage::telemetry
