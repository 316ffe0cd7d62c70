// SPDX-License-Identifier: Apache-2.0
#include "text/chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tonnage::text {
namespace {

constexpr std::uint32_t kSpecial = 2;  // [CLS] and [SEP]

// Tokens of its own that each further chunk brings.
std::uint32_t step_of(const LengthRule& rule) { return rule.max_length - kSpecial - rule.chunk_overlap; }

// The longest text that max_chunks chunks hold, with one pair of special tokens.
std::uint32_t longest_text(const LengthRule& rule) {
  return rule.max_length + (rule.max_chunks - 1) * step_of(rule);
}

void cut(const Tokens& whole, const LengthRule& rule, std::vector<Tokens>& rows) {
  const std::size_t room = rule.max_length - kSpecial;
  const auto content_end = whole.ids.end() - 1;
  auto at = whole.ids.begin() + 1;
  for (bool is_last = false; !is_last; at += step_of(rule)) {
    const auto left = static_cast<std::size_t>(content_end - at);
    is_last = left <= room || rule.first_chunk_only;
    const auto end = at + static_cast<std::ptrdiff_t>(std::min(left, room));
    Tokens chunk;
    chunk.continues = at != whole.ids.begin() + 1;
    chunk.chunked = !chunk.continues;
    chunk.ids.reserve(static_cast<std::size_t>(end - at) + kSpecial);
    chunk.ids.push_back(whole.ids.front());
    chunk.ids.insert(chunk.ids.end(), at, end);
    chunk.ids.push_back(whole.ids.back());
    rows.push_back(std::move(chunk));
    if (is_last) return;
  }
}

}  // namespace

LengthRule length_rule(const model::ModelSpec& spec) {
  return {spec.max_length, spec.too_long, spec.chunk_overlap, spec.max_chunks,
          spec.chunk_pooling == model::ChunkPooling::kFirst};
}

Status encode_rows(const Tokenizer& tokenizer, std::string_view utf8, const LengthRule& rule,
                   std::vector<Tokens>& rows) {
  if (rule.too_long != model::TooLong::kChunk) {
    TONNAGE_ASSIGN(Tokens tokens, tokenizer.encode(utf8, rule.max_length, rule.too_long));
    rows.push_back(std::move(tokens));
    return Status::ok();
  }
  Result<Tokens> whole = tokenizer.encode(utf8, longest_text(rule), model::TooLong::kRefuse);
  if (!whole.is_ok()) {
    const Status why = whole.status();
    if (why.code() != Code::kTooLarge) return why;
    return {
        why.code(), why.reason(),
        fmt::format("{}, in {} chunks of {} (max_chunks)", why.detail(), rule.max_chunks, rule.max_length)};
  }
  if (whole->ids.size() <= rule.max_length) {
    rows.push_back(std::move(*whole));
  } else {
    cut(*whole, rule, rows);
  }
  return Status::ok();
}

std::uint64_t most_ids(std::size_t text_bytes, const LengthRule& rule) {
  const std::uint64_t ids = std::uint64_t{text_bytes} + kSpecial;
  if (rule.too_long != model::TooLong::kChunk || ids <= rule.max_length) {
    return std::min<std::uint64_t>(ids, rule.max_length);
  }
  const std::uint64_t further =
      (std::min<std::uint64_t>(ids, longest_text(rule)) - rule.max_length + step_of(rule) - 1) /
      step_of(rule);
  return (1 + further) * rule.max_length;
}

}  // namespace tonnage::text
