// SPDX-License-Identifier: Apache-2.0
#include "http/detail/reply.h"

#include <fmt/format.h>

#include "base/json_text.h"

namespace tonnage::http {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Unknown";
  }
}

void append_header_value(std::string& out, std::string_view value) {
  for (const char c : value) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
}

}  // namespace

OutgoingReply json_reply(int status, std::string body) {
  OutgoingReply reply;
  reply.status = status;
  reply.content_type = kJson;
  reply.body = std::move(body);
  return reply;
}

OutgoingReply error_reply(int http_status, std::string_view reason, std::string_view detail) {
  std::string body = "{\"error\":";
  append_json_string(body, detail);
  body += '}';
  OutgoingReply reply = json_reply(http_status, std::move(body));
  reply.headers.emplace_back("X-Tonnage-Reason", reason);
  return reply;
}

OutgoingReply error_reply(const Status& status, int overload_status) {
  const int code = status.code() == Code::kOverloaded ? overload_status : http_status(status.code());
  OutgoingReply reply = error_reply(code, status.reason(), status.detail());
  if (const auto seconds = status.retry_after_seconds()) {
    reply.headers.emplace_back("Retry-After", fmt::format("{}", *seconds));
  }
  return reply;
}

std::string head_text(const OutgoingReply& reply, const HeadForm& form) {
  // HTTP/1.1 in any case: it is the server's version that is told (RFC 9110, 2.5).
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, reason_phrase(reply.status));
  if (!reply.content_type.empty()) {
    out += "Content-Type: ";
    append_header_value(out, reply.content_type);
    out += "\r\n";
  }
  for (const auto& [name, value] : reply.headers) {
    append_header_value(out, name);
    out += ": ";
    append_header_value(out, value);
    out += "\r\n";
  }
  if (!form.keep_alive) {
    out += "Connection: close\r\n";
  } else if (form.version == 10) {
    out += "Connection: keep-alive\r\n";
  }
  fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n\r\n", reply.body.size());
  return out;
}

}  // namespace tonnage::http
