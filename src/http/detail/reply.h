// SPDX-License-Identifier: Apache-2.0
// What goes back to a client, and its head as text. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "memory/budget.h"

namespace tonnage::http {

struct OutgoingReply {
  int status = 200;
  std::string content_type;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  memory::Charge envelope;  // given back after the last byte
};

struct HeadForm {
  int version = 11;
  bool keep_alive = true;
};

inline constexpr std::string_view kJson = "application/json";

OutgoingReply json_reply(int status, std::string body);
// {"error": detail}, X-Tonnage-Reason, Retry-After where the status has one. `overload_status` is what
// kOverloaded becomes (503 or 429).
OutgoingReply error_reply(const Status& status, int overload_status);
// For what HTTP itself refuses (408, 417, 431).
OutgoingReply error_reply(int http_status, std::string_view reason, std::string_view detail);

// Status line, headers and the empty line. Header values cannot smuggle lines.
std::string head_text(const OutgoingReply& reply, const HeadForm& form);

}  // namespace tonnage::http
