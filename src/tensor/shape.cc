// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"

namespace tonnage::tensor {

Result<Shape> Shape::make(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank) {
    return invalid("bad_rank", fmt::format("{} dims; at most {} are allowed", dims.size(), kMaxRank));
  }
  constexpr std::uint64_t kMaxElements = (1ULL << 60U) - 1;  // × 8 bytes stays inside 63 bits
  Shape shape;
  shape.rank_ = static_cast<std::uint8_t>(dims.size());
  std::uint64_t nonzero_product = 1;  // a zero may not hide an overflow of the other dims
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return invalid("bad_dim", fmt::format("dim {} is {}; a dim in a request is 0 or more", i, dims[i]));
    }
    shape.dims_.at(i) = dims[i];
    const auto dim = static_cast<std::uint64_t>(dims[i]);
    const auto product = checked_mul(nonzero_product, std::max<std::uint64_t>(dim, 1));
    if (!product || *product > kMaxElements) {
      return invalid("too_many_elements",
                     fmt::format("[{}] has more elements than can be addressed", fmt::join(dims, ",")));
    }
    nonzero_product = *product;
    shape.elements_ = dim == 0 ? 0 : shape.elements_ * dim;
  }
  return shape;
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(dims(), ",")); }

bool Shape::operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

}  // namespace tonnage::tensor
