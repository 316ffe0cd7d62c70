// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/detail/splitter.h"
#include "text/detail/utf8.h"
#include "text/detail/vocabulary.h"
#include "text/tokenizer.h"

namespace tonnage::text {

namespace {

using detail::Vocabulary;

// Real text needs about five bytes a token; this bounds the work that one refusal may cost.
constexpr std::size_t kMostBytesPerToken = 1024;

// Collects the ids of words up to a room for `most`; beyond it, counts.
class Pieces final : public detail::WordSink {
 public:
  Pieces(const Vocabulary& vocabulary, std::size_t most, bool stop_when_full)
      : vocabulary_(vocabulary), most_(most), stop_when_full_(stop_when_full) {}

  bool word(std::string_view utf8) override {
    const std::size_t before = ids_.size();
    const std::size_t counted_before = counted_;
    for (std::string_view rest = utf8; !rest.empty();) {
      const Vocabulary::Piece piece = vocabulary_.longest_piece(rest, rest.size() < utf8.size());
      if (piece.bytes == 0) {  // one piece is unknown: the whole word is
        ids_.resize(before);
        counted_ = counted_before;
        return add(vocabulary_.unknown());
      }
      add(piece.id);
      rest.remove_prefix(piece.bytes);
    }
    return !(stop_when_full_ && counted_ > most_);
  }

  bool word_too_long() override { return add(vocabulary_.unknown()); }

  std::size_t counted() const { return counted_; }
  std::vector<std::int64_t> take_ids() { return std::move(ids_); }
  void begin(std::size_t expected) {
    ids_.reserve(std::min(expected, most_) + 2);
    ids_.push_back(vocabulary_.start());
  }

 private:
  bool add(std::int32_t id) {
    if (++counted_ <= most_) ids_.push_back(id);
    return !(stop_when_full_ && counted_ > most_);
  }

  const Vocabulary& vocabulary_;
  std::size_t most_;
  bool stop_when_full_;
  std::size_t counted_ = 0;
  std::vector<std::int64_t> ids_;
};

class Wordpiece final : public Tokenizer {
 public:
  Wordpiece(Vocabulary vocabulary, bool lowercase)
      : vocabulary_(std::move(vocabulary)), lowercase_(lowercase) {}

  Result<Tokens> encode(std::string_view utf8, std::uint32_t max_length, model::TooLong rule) const override {
    const bool truncates = rule == model::TooLong::kTruncate;
    if (max_length < 2)
      return too_long(fmt::format("a limit of {} tokens has no room for [CLS] and [SEP]", max_length));
    if (!truncates && utf8.size() / kMostBytesPerToken > max_length) {
      return too_long(fmt::format("the text has {} bytes; at most {} bytes for each of the {} tokens allowed",
                                  utf8.size(), kMostBytesPerToken, max_length));
    }
    if (const auto bad = detail::first_invalid_byte(utf8)) {
      return invalid("bad_text", fmt::format("byte {} of the text is not valid UTF-8 (value 0x{:02X})", *bad,
                                             static_cast<unsigned char>(utf8[*bad])));
    }
    Pieces pieces(vocabulary_, max_length - 2, truncates);
    pieces.begin(utf8.size() / 3);
    detail::Splitter(pieces, lowercase_).run(utf8);
    const bool exceeds = pieces.counted() > max_length - 2;
    if (exceeds && !truncates) {
      return too_long(
          fmt::format("the text has {} tokens; at most {} are allowed", pieces.counted() + 2, max_length));
    }
    Tokens tokens{pieces.take_ids(), exceeds};
    tokens.ids.push_back(vocabulary_.end());
    return tokens;
  }

  std::size_t vocabulary_size() const override { return vocabulary_.size(); }

 private:
  static Status too_long(std::string detail) { return {Code::kTooLarge, "too_long", std::move(detail)}; }

  Vocabulary vocabulary_;
  bool lowercase_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_wordpiece(const std::string& vocab_file, bool lowercase) {
  TONNAGE_ASSIGN(Vocabulary vocabulary, Vocabulary::read(vocab_file));
  return std::unique_ptr<Tokenizer>(std::make_unique<Wordpiece>(std::move(vocabulary), lowercase));
}

}  // namespace tonnage::text
