// SPDX-License-Identifier: Apache-2.0
// ContentHash: 128 bits that tell two model files apart. Not cryptographic: it finds a changed file,
// not a forged one. Four independent lanes of multiply and xor-shift; each step is a bijection of its
// lane, so a change of one word alone can never cancel.
// Threads: one. Cost: about a gigabyte a second and more; reading the file costs more than hashing it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/spans.h"
#include "base/status.h"

namespace tonnage::model {

class ContentHash {
 public:
  // Fields are framed by their length: {"a","bc"} and {"ab","c"} differ.
  void add_field(std::string_view text);
  // Raw bytes in pieces whose sizes are multiples of 32, except for the last.
  void add_block(ByteView bytes);
  std::string hex() const;

 private:
  void step(std::size_t lane, std::uint64_t word);

  std::array<std::uint64_t, 4> lanes_{0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL, 0xa4093822299f31d0ULL,
                                      0x082efa98ec4e6c89ULL};
  std::uint64_t bytes_ = 0;
};

// Hash of one file's content. Error: not_found/no_model.
Status add_file(ContentHash& hash, const std::string& path);

}  // namespace tonnage::model
