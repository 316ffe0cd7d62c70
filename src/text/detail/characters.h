// SPDX-License-Identifier: Apache-2.0
// What BERT's tokenizer does with one character. The only file pair that knows ICU.
//
// Promises: no call allocates; ASCII answers come from a table.
// Threads: any (ICU's property data is immutable).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tonnage::text::detail {

enum class Kind : std::uint8_t {
  kDropped,      // controls, formats, private use, U+0000, U+FFFD: as if it were not there
  kSpace,        // ends a word
  kPunctuation,  // a word of its own
  kIdeograph,    // a word of its own, by block
  kLetter,       // everything else
};

// Of a character as it stands in the text.
Kind kind_of(char32_t code);

// A character after decomposition, without its accents, lower case.
struct Folded {
  struct Part {
    char32_t code = 0;
    std::uint8_t order = 0;  // canonical combining class
    bool is_punctuation = false;
    bool is_accent = false;  // it is left out, but may end a run of combining marks
  };
  std::array<Part, 18> parts;  // no canonical decomposition is longer
  std::size_t count = 0;
};

// With `fold` false the character is only looked up, not changed.
Folded fold(char32_t code, bool fold);

}  // namespace tonnage::text::detail
