// SPDX-License-Identifier: Apache-2.0
// ChunkDecoder: a chunked body (RFC 9112, 7.1), a byte at a time if need be.
//
// Promises: no state grows with the input; at most kMaxChunks non-empty chunks, kMaxLine bytes of
// size line or trailer line, kMaxTrailers bytes of trailers. Strict: lines end in CR LF.
// Why not Beast's: its chunk parser asserts on a last chunk that arrives in pieces.
// Threads: the loop. Fails with: invalid_argument/bad_chunk, too_large/too_many_chunks, and whatever
// the sink says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace tonnage::http {

inline constexpr std::uint32_t kMaxChunks = 65'536;

class ChunkSink {
 public:
  virtual ~ChunkSink() = default;
  // The size of the next chunk, before its first byte.
  virtual Status on_chunk(std::uint64_t size) = 0;
  virtual Status on_data(std::string_view data) = 0;
};

class ChunkDecoder {
 public:
  // Uses up all of `data`, or stops behind the body's end. `consumed` is set in any case.
  Status feed(std::string_view data, ChunkSink& sink, std::size_t& consumed);
  bool is_done() const { return state_ == State::kDone; }
  void reset() { *this = ChunkDecoder(); }

 private:
  enum class State : std::uint8_t {
    kSize,
    kExtension,
    kSizeEnd,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailer,
    kTrailerEnd,
    kLastLf,
    kDone,
  };
  static constexpr std::uint32_t kMaxLine = 1024;
  static constexpr std::uint32_t kMaxTrailers = 16 * 1024;

  Status on_byte(char c, ChunkSink& sink);
  Status on_size_byte(char c);
  Status on_size_end(char c, ChunkSink& sink);
  Status on_trailer_byte(char c);

  State state_ = State::kSize;
  std::uint64_t size_ = 0;  // of this chunk; counts down
  std::uint32_t digits_ = 0;
  std::uint32_t line_ = 0;
  std::uint32_t trailers_ = 0;
  std::uint32_t chunks_ = 0;
};

}  // namespace tonnage::http
