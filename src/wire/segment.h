// SPDX-License-Identifier: Apache-2.0
// Segment: shared memory that never changes its size.
//
// Promises:
//  1. create() pre-faults every page (a full cgroup fails here, not by SIGBUS later) and seals
//     against shrinking, growing and unsealing.
//  2. open() (the other side) refuses a memfd that is not sealed that way or is smaller than said.
//  3. copy_out() uses pread: the peer may punch holes, it cannot make us fault or read beyond.
// Threads: one at a time. Owns: fd and mapping. Fails with: unavailable/shared_memory,
// invalid_argument/bad_segment.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "base/spans.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tonnage::wire {

enum class Access { kReadWrite, kReadOnly };

class Segment {
 public:
  Segment() = default;
  static Result<Segment> create(std::string_view name, Bytes size);
  static Result<Segment> open(UniqueFd fd, Bytes size, Access access);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  int fd() const { return fd_.get(); }
  // A second descriptor of the same memory that cannot be mapped writable.
  Result<UniqueFd> read_only_fd() const;
  Bytes size() const { return Bytes(view_.size()); }
  MutableByteView view() { return view_; }
  ByteView view() const { return view_; }
  // Copies [offset, offset + into.size()) out. Error: bad_segment when that is outside.
  Status copy_out(std::uint64_t offset, MutableByteView into) const;

 private:
  Segment(UniqueFd fd, MutableByteView view) : fd_(std::move(fd)), view_(view) {}
  UniqueFd fd_;
  MutableByteView view_;
};

// A small sealed memfd with `text` in it (specs as JSON), and reading one (at most `limit` bytes).
Result<UniqueFd> sealed_text(std::string_view name, std::string_view text);
Result<std::string> read_sealed_text(int fd, Bytes limit);

}  // namespace tonnage::wire
