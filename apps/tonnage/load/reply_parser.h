// SPDX-License-Identifier: Apache-2.0
// ReplyParser: one HTTP/1.1 reply out of bytes as they arrive. Knows what a measuring client needs:
// status, length, whether the connection stays, and the headers that explain a refusal.
// Fails with: invalid_argument/bad_reply (and says what was read). Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tonnage::load {

struct HttpReply {
  int status = 0;
  std::string reason;           // X-Tonnage-Reason
  std::uint32_t truncated = 0;  // X-Tonnage-Truncated-Rows
  bool keep_alive = true;
  std::string body;
};

class ReplyParser {
 public:
  // Forgets everything; `keep_body` false drops the body's bytes as they come.
  void reset(bool keep_body);
  // True when the reply is complete. Bytes after it are an error: nobody asked for them.
  Result<bool> feed(std::string_view bytes);
  bool has_begun() const { return !head_.empty() || in_body_; }
  HttpReply take() { return std::move(reply_); }

 private:
  Status read_head();
  Status read_header(std::string_view line);
  Result<bool> read_body(std::string_view bytes);

  std::string head_;
  HttpReply reply_;
  std::uint64_t body_left_ = 0;
  bool has_length_ = false;
  bool in_body_ = false;
  bool keep_body_ = false;
};

}  // namespace tonnage::load
