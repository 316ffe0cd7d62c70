// SPDX-License-Identifier: Apache-2.0
// CostTable: what a batch of (rows, padded length) takes, as two dense tables that the planner reads
// without a call, a lock or an allocation.
//
// Promises: grant and time are monotone in rows and in length; a shape outside the table has
// Bytes::max(). Threads: the loop.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace tonnage::cost {

// length is the padded length; 0 (one column) for a model without a free dim.
struct Shape {
  std::uint32_t rows = 0;
  std::uint32_t length = 0;
  bool operator==(const Shape&) const = default;
};

class CostTable {
 public:
  // Columns are the lengths pad_multiple, 2 × pad_multiple, …, max_length (clipped); or one column.
  CostTable(std::uint32_t max_rows, std::uint32_t pad_multiple, std::uint32_t max_length);

  std::uint32_t max_rows() const { return max_rows_; }
  std::uint32_t columns() const { return columns_; }
  // Column of the smallest padded length that holds `length`.
  std::uint32_t column_of(std::uint32_t length) const {
    if (max_length_ == 0 || length == 0) return 0;
    const std::uint32_t column = (length - 1) / pad_multiple_;
    return column < columns_ ? column : columns_ - 1;
  }
  std::uint32_t length_of(std::uint32_t column) const {
    if (max_length_ == 0) return 0;
    const std::uint32_t length = (column + 1) * pad_multiple_;
    return length < max_length_ ? length : max_length_;
  }

  // rows in [1, max_rows].
  Bytes grant(std::uint32_t rows, std::uint32_t column) const { return Bytes(grants_[at(rows, column)]); }
  Duration time(std::uint32_t rows, std::uint32_t column) const { return Duration(times_[at(rows, column)]); }
  void set(std::uint32_t rows, std::uint32_t column, Bytes grant, Duration time) {
    grants_[at(rows, column)] = grant.count();
    times_[at(rows, column)] = time.count();
  }

 private:
  std::size_t at(std::uint32_t rows, std::uint32_t column) const {
    return static_cast<std::size_t>(column) * max_rows_ + (rows - 1);
  }
  std::uint32_t max_rows_;
  std::uint32_t pad_multiple_;
  std::uint32_t max_length_;
  std::uint32_t columns_;
  std::vector<std::uint64_t> grants_;
  std::vector<std::int64_t> times_;
};

}  // namespace tonnage::cost
