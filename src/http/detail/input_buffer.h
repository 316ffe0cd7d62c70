// SPDX-License-Identifier: Apache-2.0
// InputBuffer: the bytes of one connection that were read and not used yet; 8 KiB, 16 KiB at most.
// Threads: the loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tonnage::http {

class InputBuffer {
 public:
  static constexpr std::size_t kFirst = 8 * 1024;
  static constexpr std::size_t kMost = 16 * 1024;

  std::string_view view() const { return {data_.data() + begin_, end_ - begin_}; }
  bool is_empty() const { return begin_ == end_; }
  bool is_full() const { return end_ - begin_ == kMost; }

  // Moves nothing: a read may be in flight behind the end.
  void consume(std::size_t n) { begin_ += n; }
  // Room to read into; empty only when is_full(). Only while no read is in flight.
  std::span<char> prepare() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ == data_.size() && begin_ > 0) {
      std::copy(data_.begin() + static_cast<std::ptrdiff_t>(begin_),
                data_.begin() + static_cast<std::ptrdiff_t>(end_), data_.begin());
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == data_.size() && data_.size() < kMost) data_.resize(data_.empty() ? kFirst : kMost);
    return std::span(data_).subspan(end_);
  }
  void commit(std::size_t n) { end_ += n; }

 private:
  std::vector<char> data_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace tonnage::http
