// SPDX-License-Identifier: Apache-2.0
#include "memory/reading.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

namespace tonnage::memory {
namespace {

// "\nVmData:\t   123 kB" → 123 KiB. Keys carry the line's start: a process may be *named* "VmData:".
std::optional<Bytes> field(std::string_view text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  const auto digit = text.find_first_not_of(" \t");
  if (digit == std::string_view::npos) return std::nullopt;
  std::uint64_t amount = 0;
  const auto [end, error] = std::from_chars(text.data() + digit, text.data() + text.size(), amount);
  if (error != std::errc() || !std::string_view(end, text.data() + text.size()).starts_with(" kB")) {
    return std::nullopt;
  }
  return kib(amount);
}

Status no_process(std::string_view what, int error) {
  return {Code::kNotFound, "no_process", fmt::format("{}: {}", what, std::strerror(error))};
}

}  // namespace

Result<ProcessReading> parse_status(std::string_view status_file) {
  const auto hwm = field(status_file, "\nVmHWM:");
  // A process that has exited but was not reaped has no memory lines at all.
  if (!hwm && status_file.find("\nState:\tZ") != std::string_view::npos) {
    return Status(Code::kNotFound, "no_process", "the process has exited");
  }
  const auto anonymous = field(status_file, "\nRssAnon:");
  const auto file = field(status_file, "\nRssFile:");
  const auto shared = field(status_file, "\nRssShmem:");
  const auto data = field(status_file, "\nVmData:");
  if (!hwm || !anonymous || !file || !shared || !data) {
    return internal("bad_status",
                    "a /proc/PID/status lacks VmHWM, RssAnon, RssFile, RssShmem or VmData in kB");
  }
  return ProcessReading{*anonymous, *file, *shared, *hwm, *data};
}

Result<ProcessReader> ProcessReader::open(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/status", pid);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return no_process(path, errno);
  return ProcessReader(std::move(fd));
}

Result<ProcessReading> ProcessReader::read() const {
  std::array<char, 4096> text{};
  const ssize_t got = ::pread(status_.get(), text.data(), text.size(), 0);
  if (got < 0) return no_process("reading /proc/PID/status", errno);
  return parse_status({text.data(), static_cast<std::size_t>(got)});
}

Status reset_resident_peak(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/clear_refs", pid);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), "5", 1) != 1) return no_process(path, errno);
  return Status::ok();
}

Result<ProcessReading> read_process(pid_t pid) {
  TONNAGE_ASSIGN(const ProcessReader reader, ProcessReader::open(pid));
  return reader.read();
}

}  // namespace tonnage::memory
