// SPDX-License-Identifier: Apache-2.0
#include "wire/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/checked.h"

namespace tonnage::wire {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int kTextSeals = kSizeSeals | F_SEAL_WRITE;

Status system_failure(std::string_view call) {
  return {Code::kUnavailable, "shared_memory", fmt::format("{}: {}", call, std::strerror(errno))};
}

Result<UniqueFd> make_memfd(std::string_view name) {
  UniqueFd fd(::memfd_create(std::string(name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_failure("memfd_create");
  return fd;
}

Result<MutableByteView> map(int fd, Bytes size, Access access) {
  const int protection = access == Access::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const place = ::mmap(nullptr, size.size(), protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (place == MAP_FAILED) return system_failure("mmap");
  return MutableByteView(static_cast<std::byte*>(place), size.size());
}

// The size of a memfd that has `seals`. Only memfds have seals at all, so this also refuses pipes,
// sockets and files of a file system that could make a read wait for ever.
Result<Bytes> sealed_size(int fd, int seals) {
  const int present = ::fcntl(fd, F_GET_SEALS);
  if (present < 0) return invalid("bad_segment", "the descriptor is not a memfd");
  if ((present & seals) != seals) return invalid("bad_segment", "the memfd lacks a seal and could change");
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_failure("fstat");
  return Bytes(static_cast<std::uint64_t>(info.st_size));
}

Status read_exactly(int fd, std::uint64_t offset, MutableByteView into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("pread");
    if (got == 0) return invalid("bad_segment", "the memory ends before its stated size");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return Status::ok();
}

Status write_exactly(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_failure("write");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return Status::ok();
}

}  // namespace

Result<Segment> Segment::create(std::string_view name, Bytes size) {
  if (size == Bytes() || size.count() > std::numeric_limits<std::int64_t>::max()) {
    return invalid("bad_segment",
                   fmt::format("a segment of {} bytes; 1 to 2^63-1 are allowed", size.count()));
  }
  const auto length = static_cast<off_t>(size.count());
  TONNAGE_ASSIGN(UniqueFd fd, make_memfd(name));
  if (::ftruncate(fd.get(), length) != 0) return system_failure("ftruncate");
  if (::fallocate(fd.get(), 0, 0, length) != 0) return system_failure("fallocate");
  TONNAGE_ASSIGN(const MutableByteView view, map(fd.get(), size, Access::kReadWrite));
  Segment segment(std::move(fd), view);
  if (::fcntl(segment.fd(), F_ADD_SEALS, kSizeSeals) != 0) return system_failure("F_ADD_SEALS");
  return segment;
}

Result<Segment> Segment::open(UniqueFd fd, Bytes size, Access access) {
  TONNAGE_ASSIGN(const Bytes real, sealed_size(fd.get(), kSizeSeals));
  if (size == Bytes() || real < size) {
    return invalid("bad_segment",
                   fmt::format("{} bytes were announced, the memfd has {}", size.count(), real.count()));
  }
  TONNAGE_ASSIGN(const MutableByteView view, map(fd.get(), size, access));
  return Segment(std::move(fd), view);
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)), view_(std::exchange(other.view_, {})) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(view_, other.view_);
  return *this;
}

Segment::~Segment() {
  if (!view_.empty()) ::munmap(view_.data(), view_.size());
}

Result<UniqueFd> Segment::read_only_fd() const {
  // A dup would share the writable description; only opening it anew gives one that is read-only.
  const std::string path = fmt::format("/proc/self/fd/{}", fd());
  UniqueFd copy(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy) return system_failure("open");
  return copy;
}

Status Segment::copy_out(std::uint64_t offset, MutableByteView into) const {
  if (!fits_inside(offset, into.size(), view_.size())) {
    return invalid("bad_segment", fmt::format("{} bytes at {} lie outside a segment of {} bytes", into.size(),
                                              offset, view_.size()));
  }
  return read_exactly(fd(), offset, into);
}

Result<UniqueFd> sealed_text(std::string_view name, std::string_view text) {
  TONNAGE_ASSIGN(UniqueFd fd, make_memfd(name));
  TONNAGE_TRY(write_exactly(fd.get(), as_bytes(text)));
  if (::fcntl(fd.get(), F_ADD_SEALS, kTextSeals) != 0) return system_failure("F_ADD_SEALS");
  return fd;
}

Result<std::string> read_sealed_text(int fd, Bytes limit) {
  TONNAGE_ASSIGN(const Bytes size, sealed_size(fd, kTextSeals));
  if (size > limit) {
    return invalid("bad_segment",
                   fmt::format("a text of {} bytes; at most {} are read", size.count(), limit.count()));
  }
  std::string text(size.size(), '\0');
  TONNAGE_TRY(read_exactly(fd, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace tonnage::wire
