// SPDX-License-Identifier: Apache-2.0
#include "http/detail/chunk_decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/detail/hex.h"

namespace tonnage::http {
namespace {

Status bad(std::string_view what) { return invalid("bad_chunk", fmt::format("chunked body: {}", what)); }

}  // namespace

Status ChunkDecoder::feed(std::string_view data, ChunkSink& sink, std::size_t& consumed) {
  consumed = 0;
  while (consumed < data.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const auto take = static_cast<std::size_t>(std::min<std::uint64_t>(size_, data.size() - consumed));
      TONNAGE_TRY(sink.on_data(data.substr(consumed, take)));
      consumed += take;
      size_ -= take;
      if (size_ == 0) state_ = State::kDataCr;
      continue;
    }
    TONNAGE_TRY(on_byte(data[consumed], sink));
    ++consumed;
  }
  return Status::ok();
}

Status ChunkDecoder::on_byte(char c, ChunkSink& sink) {
  switch (state_) {
    case State::kSize: return on_size_byte(c);
    case State::kExtension:
      if (++line_ > kMaxLine) return bad("a chunk extension is too long");
      if (c == '\n') return bad("a line feed without a carriage return");
      if (c == '\r') state_ = State::kSizeEnd;
      return Status::ok();
    case State::kSizeEnd: return on_size_end(c, sink);
    case State::kDataCr:
      if (c != '\r') return bad("a chunk is longer than its size says");
      state_ = State::kDataLf;
      return Status::ok();
    case State::kDataLf:
      if (c != '\n') return bad("a chunk is longer than its size says");
      state_ = State::kSize;
      return Status::ok();
    case State::kTrailerStart:
    case State::kTrailer:
    case State::kTrailerEnd:
    case State::kLastLf: return on_trailer_byte(c);
    case State::kData:
    case State::kDone: break;
  }
  return bad("a byte where none belongs");
}

Status ChunkDecoder::on_size_byte(char c) {
  const int digit = hex_digit(c);
  if (digit >= 0) {
    // 15 digits: below 2^60, so that no sum of sizes wraps.
    if (++digits_ > 15) return bad("a chunk size has more than 15 digits");
    size_ = size_ * 16 + static_cast<std::uint64_t>(digit);
    return Status::ok();
  }
  if (digits_ == 0) return bad("a chunk has no size");
  if (c == '\r') {
    state_ = State::kSizeEnd;
  } else if (c == ';' || c == ' ' || c == '\t') {
    line_ = 0;
    state_ = State::kExtension;
  } else {
    return bad("a chunk size is not hexadecimal");
  }
  return Status::ok();
}

Status ChunkDecoder::on_size_end(char c, ChunkSink& sink) {
  if (c != '\n') return bad("a carriage return without a line feed");
  digits_ = 0;
  if (size_ == 0) {
    state_ = State::kTrailerStart;
    return Status::ok();
  }
  if (++chunks_ > kMaxChunks) {
    return {Code::kTooLarge, "too_many_chunks", fmt::format("the body has more than {} chunks", kMaxChunks)};
  }
  state_ = State::kData;
  return sink.on_chunk(size_);
}

// Trailers are allowed and ignored.
Status ChunkDecoder::on_trailer_byte(char c) {
  if (++trailers_ > kMaxTrailers) return bad("the trailers are too long");
  switch (state_) {
    case State::kTrailerStart: state_ = c == '\r' ? State::kLastLf : State::kTrailer; break;
    case State::kTrailer:
      if (c == '\r') state_ = State::kTrailerEnd;
      break;
    case State::kTrailerEnd:
      if (c != '\n') return bad("a carriage return without a line feed");
      state_ = State::kTrailerStart;
      break;
    default:
      if (c != '\n') return bad("a carriage return without a line feed");
      state_ = State::kDone;
      break;
  }
  return Status::ok();
}

}  // namespace tonnage::http
