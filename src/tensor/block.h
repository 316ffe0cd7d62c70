// SPDX-License-Identifier: Apache-2.0
// Blocks: the box that two row-major arrays of different size have in common. Padding a row and cutting
// it back are the same walk.
//
// Promises: touches elements inside both arrays only, given that both hold the product of their dims.
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/spans.h"
#include "tensor/shape.h"

namespace tonnage::tensor {

using Dims = std::span<const std::int64_t>;

// Calls fn(from, to, count) for each run of elements that is contiguous in both; offsets in elements.
template <typename Fn>
void for_each_run(Dims from, Dims to, Fn fn) {
  const std::size_t rank = std::min(from.size(), to.size());
  std::array<std::size_t, kMaxRank> common{};
  for (std::size_t i = 0; i < rank; ++i) common.at(i) = static_cast<std::size_t>(std::min(from[i], to[i]));
  // Dims behind `axis` are equal in both, so a run covers them whole.
  std::size_t axis = rank;
  std::size_t run = 1;
  while (axis > 0) {
    --axis;
    run *= common.at(axis);
    if (from[axis] != to[axis]) break;
  }
  std::size_t runs = run == 0 ? 0 : 1;
  for (std::size_t i = 0; i < axis; ++i) runs *= common.at(i);
  for (std::size_t number = 0; number < runs; ++number) {
    std::size_t rest = number;
    std::size_t stride_from = 1;
    std::size_t stride_to = 1;
    std::size_t at_from = 0;
    std::size_t at_to = 0;
    for (std::size_t i = rank; i-- > 0;) {
      if (i < axis) {
        at_from += rest % common.at(i) * stride_from;
        at_to += rest % common.at(i) * stride_to;
        rest /= common.at(i);
      }
      stride_from *= static_cast<std::size_t>(from[i]);
      stride_to *= static_cast<std::size_t>(to[i]);
    }
    fn(at_from, at_to, run);
  }
}

struct ConstBlock {
  ByteView bytes;
  Dims dims;
};
struct Block {
  MutableByteView bytes;
  Dims dims;
};
// What lies outside the common box keeps its value.
void copy_block(ConstBlock from, Block to, std::size_t element_size);

// True when shrinking `dims` to `smaller` keeps a prefix of the array, so that nothing must be moved.
bool is_prefix(Dims smaller, Dims dims);

}  // namespace tonnage::tensor
