// SPDX-License-Identifier: Apache-2.0
// Splitter: valid UTF-8 → the words that WordPiece looks up, as BERT's normaliser and pre-tokenizer
// give them, in order.
//
// Promises: nothing is allocated; a word of more than 100 characters arrives without its bytes.
// Threads: one. Owns: the word being read; borrows the sink.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/detail/characters.h"

namespace tonnage::text::detail {

inline constexpr std::size_t kLongestWord = 100;  // characters

class WordSink {
 public:
  virtual ~WordSink() = default;
  // Both return false to stop. The view dies with the call.
  virtual bool word(std::string_view utf8) = 0;
  virtual bool word_too_long() = 0;
};

class Splitter {
 public:
  Splitter(WordSink& sink, bool lowercase) : sink_(sink), lowercase_(lowercase) {}

  // False when the sink stopped it.
  bool run(std::string_view text);

 private:
  bool take_ascii(char byte);
  bool take(char32_t code);
  bool take_part(const Folded::Part& part);
  bool end_word();
  void append(const Folded::Part& part);
  void append_mark(const Folded::Part& part);

  // A combining mark of the run at the word's end; marks are kept in canonical order.
  struct Mark {
    std::uint8_t order = 0;
    std::uint8_t bytes = 0;
  };

  WordSink& sink_;
  bool lowercase_;
  std::array<char, 4 * kLongestWord> word_{};
  std::size_t bytes_ = 0;
  std::size_t characters_ = 0;
  std::array<Mark, kLongestWord> marks_{};
  std::size_t mark_count_ = 0;
};

}  // namespace tonnage::text::detail
