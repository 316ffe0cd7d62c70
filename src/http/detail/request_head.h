// SPDX-License-Identifier: Apache-2.0
// What the server keeps of a request's head; unknown headers are ignored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tonnage::http {

enum class Method : std::uint8_t { kGet, kHead, kPost, kOther };

struct RequestHead {
  Method method = Method::kOther;
  std::string target;
  int version = 11;  // 10 or 11
  std::string content_type;
  std::string accept;
  std::string content_encoding;
  std::string expect;
  std::string transfer_encoding;
  std::optional<std::string> json_length;  // Inference-Header-Content-Length, as sent
  std::optional<std::uint64_t> content_length;
  std::string authorization;
  bool for_another = false;       // sent by a proxy or a page of a browser: the peer is not who asks
  bool peer_is_loopback = false;  // filled in by the connection
  bool chunked = false;
  bool keep_alive = true;

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

}  // namespace tonnage::http
