// SPDX-License-Identifier: Apache-2.0
// Shape: at most eight dims, none negative, whose product is known not to overflow.
//
// Promises: a Shape that exists was checked; elements() and bytes_of() never wrap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "tensor/datatype.h"

namespace tonnage::tensor {

inline constexpr std::size_t kMaxRank = 8;

class Shape {
 public:
  Shape() = default;  // rank 0: one element
  // Errors: bad_rank (more than eight dims), bad_dim (negative), too_many_elements (the product, or
  // the product times eight bytes, leaves 63 bits).
  static Result<Shape> make(std::span<const std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::int64_t dim(std::size_t i) const { return dims_.at(i); }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  std::uint64_t elements() const { return elements_; }
  Bytes bytes_of(DataType type) const { return Bytes(elements_ * element_size(type)); }

  std::string to_string() const;  // "[2,128]"
  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::uint64_t elements_ = 1;
  std::uint8_t rank_ = 0;
};

}  // namespace tonnage::tensor
