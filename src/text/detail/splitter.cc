// SPDX-License-Identifier: Apache-2.0
#include "text/detail/splitter.h"

#include <algorithm>

#include "text/detail/utf8.h"

namespace tonnage::text::detail {

bool Splitter::run(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const char byte = text[at];
    const bool is_ascii = static_cast<unsigned char>(byte) < 0x80;
    if (is_ascii) ++at;
    if (!(is_ascii ? take_ascii(byte) : take(next_code_point(text, at)))) return false;
  }
  return end_word();
}

bool Splitter::take_ascii(char byte) {
  switch (kind_of(static_cast<char32_t>(byte))) {
    case Kind::kDropped: return true;
    case Kind::kSpace: return end_word();
    case Kind::kPunctuation: return end_word() && sink_.word({&byte, 1});
    case Kind::kIdeograph:
    case Kind::kLetter: break;
  }
  mark_count_ = 0;
  if (++characters_ <= kLongestWord) {
    word_[bytes_++] = lowercase_ && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + ('a' - 'A')) : byte;
  }
  return true;
}

bool Splitter::take(char32_t code) {
  const Kind kind = kind_of(code);
  if (kind == Kind::kDropped) return true;
  if (kind == Kind::kSpace) return end_word();
  const bool stands_alone = kind == Kind::kIdeograph;
  if (stands_alone && !end_word()) return false;
  const Folded folded = fold(code, lowercase_);
  for (std::size_t i = 0; i < folded.count; ++i) {
    if (!take_part(folded.parts[i])) return false;
  }
  return !stands_alone || end_word();
}

bool Splitter::take_part(const Folded::Part& part) {
  if (part.is_accent) {
    if (part.order == 0) mark_count_ = 0;  // left out, yet marks do not move across it
    return true;
  }
  if (!part.is_punctuation) {
    append(part);
    return true;
  }
  if (!end_word()) return false;
  append(part);
  return end_word();
}

bool Splitter::end_word() {
  const std::size_t characters = characters_;
  const std::string_view word(word_.data(), bytes_);
  bytes_ = characters_ = mark_count_ = 0;
  if (characters == 0) return true;
  return characters > kLongestWord ? sink_.word_too_long() : sink_.word(word);
}

void Splitter::append(const Folded::Part& part) {
  if (++characters_ > kLongestWord) return;
  if (part.order != 0) {
    append_mark(part);
    return;
  }
  mark_count_ = 0;
  bytes_ += put_code_point(part.code, word_.data() + bytes_);
}

void Splitter::append_mark(const Folded::Part& part) {
  std::array<char, 4> utf8{};
  const std::size_t length = put_code_point(part.code, utf8.data());
  // Stable: it moves before marks of a higher class only.
  std::size_t place = mark_count_;
  std::size_t at = bytes_;
  for (; place > 0 && marks_[place - 1].order > part.order; --place) {
    at -= marks_[place - 1].bytes;
    marks_[place] = marks_[place - 1];
  }
  marks_[place] = {part.order, static_cast<std::uint8_t>(length)};
  ++mark_count_;
  char* const begin = word_.data();
  std::copy_backward(begin + at, begin + bytes_, begin + bytes_ + length);
  std::copy_n(utf8.begin(), length, begin + at);
  bytes_ += length;
}

}  // namespace tonnage::text::detail
