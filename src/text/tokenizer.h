// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text → ids. WordPiece as BERT does it, on ICU.
//
// Promises: equal to the reference tokenizer (Hugging Face's BertTokenizer, no special tokens parsed
// in user text) on every valid UTF-8 text; invalid UTF-8 is refused; a text of more than 1,024 bytes
// per allowed token is refused before it is split; with truncation it stops at the limit.
// Threads: const, any. Fails with: invalid_argument/bad_text, too_large/too_long (tokens needed and limit).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/spec.h"

namespace tonnage::text {

struct Tokens {
  std::vector<std::int64_t> ids;  // with [CLS] … [SEP]
  bool truncated = false;
  bool chunked = false;    // the first chunk of a text that was cut into several
  bool continues = false;  // a further chunk of the text before it
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual Result<Tokens> encode(std::string_view utf8, std::uint32_t max_length,
                                model::TooLong rule) const = 0;
  virtual std::size_t vocabulary_size() const = 0;
};

// Error: bad_vocabulary, naming file and what is missing ([UNK], [CLS], [SEP], [PAD]).
Result<std::unique_ptr<Tokenizer>> make_wordpiece(const std::string& vocab_file, bool lowercase);

}  // namespace tonnage::text
