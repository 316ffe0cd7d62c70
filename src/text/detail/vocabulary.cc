// SPDX-License-Identifier: Apache-2.0
#include "text/detail/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

#include "text/detail/splitter.h"
#include "text/detail/utf8.h"

namespace tonnage::text::detail {

namespace {

constexpr std::size_t kMostPieces = 1U << 24;  // far above any model; offsets stay within 32 bits
constexpr std::string_view kInside = "##";

// FNV-1a, so that the hashes of all beginnings of a word cost one pass.
std::uint32_t first_hash(bool continues) { return continues ? 0x050C5D1FU : 0x811C9DC5U; }
std::uint32_t next_hash(std::uint32_t hash, char byte) {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x01000193U;
}

std::string_view without_line_end(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? std::string_view() : line.substr(0, last + 1);
}

std::size_t slots_for(std::size_t pieces) {
  std::size_t count = 16;
  while (count < 2 * pieces) count *= 2;
  return count;
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return invalid("bad_vocabulary", fmt::format("{}: cannot be opened", file));
  std::string content;
  std::array<char, 1U << 16> chunk;
  // read() turns an exception of the buffer (a folder gives one) into a state.
  while (stream.read(chunk.data(), chunk.size()) || stream.gcount() > 0) {
    content.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (!stream.eof()) return invalid("bad_vocabulary", fmt::format("{}: cannot be read", file));
  return parse(content, file);
}

Result<Vocabulary> Vocabulary::parse(std::string_view content, const std::string& file) {
  if (const auto bad = first_invalid_byte(content)) {
    return invalid("bad_vocabulary", fmt::format("{}: byte {} is not valid UTF-8", file, *bad));
  }
  const auto lines = static_cast<std::size_t>(std::count(content.begin(), content.end(), '\n')) + 1;
  if (lines > kMostPieces || content.size() > kMostPieces * 16) {
    return invalid("bad_vocabulary", fmt::format("{}: {} lines; at most {}", file, lines, kMostPieces));
  }
  Vocabulary vocabulary;
  vocabulary.pieces_.reserve(content.size());
  vocabulary.slots_.resize(slots_for(lines));
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t stop = std::min(content.find('\n', at), content.size());
    vocabulary.insert(without_line_end(content.substr(at, stop - at)),
                      static_cast<std::int32_t>(vocabulary.size_++));
    at = stop + 1;
  }
  TONNAGE_TRY(vocabulary.find_special(file));
  return vocabulary;
}

void Vocabulary::insert(std::string_view line, std::int32_t id) {
  Slot piece;
  piece.continues = line.size() > kInside.size() && line.substr(0, kInside.size()) == kInside;
  if (piece.continues) line.remove_prefix(kInside.size());
  piece.hash = first_hash(piece.continues);
  for (const char byte : line) piece.hash = next_hash(piece.hash, byte);
  piece.offset = static_cast<std::uint32_t>(pieces_.size());
  piece.bytes = static_cast<std::uint32_t>(line.size());
  piece.id = id;
  std::size_t at = piece.hash & (slots_.size() - 1);
  while (slots_[at].id >= 0) {
    Slot& there = slots_[at];
    if (there.continues == piece.continues &&
        std::string_view(pieces_).substr(there.offset, there.bytes) == line) {
      there.id = id;  // named twice: the last line counts, as in the reference
      return;
    }
    at = (at + 1) & (slots_.size() - 1);
  }
  slots_[at] = piece;
  pieces_ += line;
  longest_ = std::max(longest_, line.size());
}

std::int32_t Vocabulary::find(std::uint32_t hash, std::string_view piece, bool continues) const {
  for (std::size_t at = hash & (slots_.size() - 1); slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& there = slots_[at];
    if (there.hash == hash && there.continues == continues &&
        std::string_view(pieces_).substr(there.offset, there.bytes) == piece) {
      return there.id;
    }
  }
  return -1;
}

Status Vocabulary::find_special(const std::string& file) {
  const auto id_of = [this](std::string_view piece) {
    std::uint32_t hash = first_hash(false);
    for (const char byte : piece) hash = next_hash(hash, byte);
    return find(hash, piece, false);
  };
  for (const std::string_view piece : {"[UNK]", "[CLS]", "[SEP]", "[PAD]"}) {
    if (id_of(piece) >= 0) continue;
    return invalid("bad_vocabulary",
                   fmt::format("{}: no line reads '{}'; a BERT vocabulary has [UNK], [CLS], "
                               "[SEP] and [PAD]",
                               file, piece));
  }
  unknown_ = id_of("[UNK]");
  start_ = id_of("[CLS]");
  end_ = id_of("[SEP]");
  return Status::ok();
}

Vocabulary::Piece Vocabulary::longest_piece(std::string_view rest, bool continues) const {
  std::array<std::uint32_t, 4 * kLongestWord> hashes;  // of each beginning; a word is no longer than that
  const std::size_t limit = std::min({rest.size(), longest_, hashes.size()});
  std::uint32_t hash = first_hash(continues);
  for (std::size_t i = 0; i < limit; ++i) hashes[i] = hash = next_hash(hash, rest[i]);
  // Longest first: most words are in the vocabulary as they are.
  for (std::size_t bytes = limit; bytes > 0; --bytes) {
    if (bytes < rest.size() && !starts_code_point(rest[bytes])) continue;
    const std::int32_t id = find(hashes[bytes - 1], rest.substr(0, bytes), continues);
    if (id >= 0) return {id, bytes};
  }
  return {};
}

}  // namespace tonnage::text::detail
