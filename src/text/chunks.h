// SPDX-License-Identifier: Apache-2.0
// One text → its rows of tokens: one, or as many chunks as it needs where the model says chunk.
//
// Promises: every chunk but the last is as long as the model reads, each with [CLS] and [SEP] of its own;
// neighbours share `chunk_overlap` tokens and together they hold every token of the text. Where only the
// first chunk's output counts, only the first chunk is made. More than max_chunks: refused.
// Threads: pure functions. Fails with: those of Tokenizer::encode.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace tonnage::text {

struct LengthRule {
  std::uint32_t max_length = 0;
  model::TooLong too_long = model::TooLong::kRefuse;
  std::uint32_t chunk_overlap = 0;
  std::uint32_t max_chunks = 1;
  bool first_chunk_only = false;
};

LengthRule length_rule(const model::ModelSpec& spec);
// Appends the rows of one text.
Status encode_rows(const Tokenizer& tokenizer, std::string_view utf8, const LengthRule& rule,
                   std::vector<Tokens>& rows);
// Most ids in all rows of a text of so many bytes: a token has at least one byte.
std::uint64_t most_ids(std::size_t text_bytes, const LengthRule& rule);

}  // namespace tonnage::text
