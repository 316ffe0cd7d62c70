// SPDX-License-Identifier: Apache-2.0
// Vocabulary: a BERT vocab.txt (one piece a line, its number is its id) and the longest-match lookup.
//
// Promises: a lookup does not allocate; its cost is bounded by the word's length times the longest piece.
// Threads: const, any. Fails with: invalid_argument/bad_vocabulary, naming file and line or piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tonnage::text::detail {

class Vocabulary {
 public:
  static Result<Vocabulary> read(const std::string& file);
  static Result<Vocabulary> parse(std::string_view content, const std::string& file);

  std::size_t size() const { return size_; }
  std::int32_t unknown() const { return unknown_; }
  std::int32_t start() const { return start_; }
  std::int32_t end() const { return end_; }

  // The longest piece that `rest` begins with, at a code point's border. `continues`: inside a word (##…).
  struct Piece {
    std::int32_t id = 0;
    std::size_t bytes = 0;  // 0: none
  };
  Piece longest_piece(std::string_view rest, bool continues) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t offset = 0;  // into pieces_
    std::uint32_t bytes = 0;
    std::int32_t id = -1;  // -1: free
    bool continues = false;
  };
  void insert(std::string_view line, std::int32_t id);
  std::int32_t find(std::uint32_t hash, std::string_view piece, bool continues) const;
  Status find_special(const std::string& file);

  std::string pieces_;       // all of them, one after the other, without ##
  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  std::size_t longest_ = 0;  // bytes
  std::size_t size_ = 0;
  std::int32_t unknown_ = 0;
  std::int32_t start_ = 0;
  std::int32_t end_ = 0;
};

}  // namespace tonnage::text::detail
