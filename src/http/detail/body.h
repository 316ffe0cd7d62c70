// SPDX-License-Identifier: Apache-2.0
// Body: collects one request's body; every byte is charged to the ingress account before it is kept.
//
// Promises:
//  1. A declared length is charged at once, all or nothing; a chunked body as it grows, by doubling.
//  2. The string's capacity never exceeds the charge, and leaves kBodySpare bytes behind the text.
//  3. clear() and the destructor give everything back.
// Threads: the loop. Fails with: overloaded/ingress_full, too_large/body, too_large/too_many_chunks,
// invalid_argument/bad_chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/service.h"
#include "http/detail/chunk_decoder.h"
#include "memory/budget.h"

namespace tonnage::http {

inline constexpr std::size_t kBodySpare = 64;  // what simdjson reads beyond the end

class Body final : public ChunkSink {
 public:
  explicit Body(api::Service& service) : service_(service) {}

  Status begin_fixed(std::uint64_t length);
  Status begin_chunked();
  // Takes what belongs to the body from the front of `data`.
  Status take(std::string_view data, std::size_t& consumed);
  bool is_complete() const;

  // For a declared length: room to read into directly, without a copy. Valid until the next call.
  std::span<char> room(std::size_t at_most);
  void commit(std::size_t bytes);

  std::uint64_t received() const { return received_; }
  // How much must arrive within one stall timeout: at least 4 KiB, at least a sixteenth of the whole.
  std::uint64_t progress_step() const;

  std::string take_text();
  memory::Charge take_charge();
  void release_charge() { charge_.release(); }
  void clear();

 private:
  Status on_chunk(std::uint64_t size) override;
  Status on_data(std::string_view data) override;
  Status charge(std::uint64_t text_bytes);

  api::Service& service_;
  ChunkDecoder decoder_;
  bool chunked_ = false;
  std::uint64_t length_ = 0;    // declared
  std::uint64_t received_ = 0;  // of the text
  std::string text_;
  memory::Charge charge_;
};

}  // namespace tonnage::http
