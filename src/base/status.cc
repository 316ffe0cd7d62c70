// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <array>
#include <cstddef>

namespace tonnage {
namespace {

struct CodeRow {
  std::string_view name;
  int http;
};

// In the order of enum class Code.
constexpr std::array<CodeRow, 15> kCodes = {{{"ok", 200},
                                             {"invalid_argument", 400},
                                             {"permission_denied", 403},
                                             {"not_found", 404},
                                             {"method_not_allowed", 405},
                                             {"not_acceptable", 406},
                                             {"already_exists", 409},
                                             {"too_large", 413},
                                             {"unsupported_media", 415},
                                             {"cancelled", 499},
                                             {"internal", 500},
                                             {"unimplemented", 501},
                                             {"overloaded", 503},
                                             {"unavailable", 503},
                                             {"deadline_exceeded", 504}}};

}  // namespace

std::string_view code_name(Code code) { return kCodes.at(static_cast<std::size_t>(code)).name; }
int http_status(Code code) { return kCodes.at(static_cast<std::size_t>(code)).http; }

std::string Status::to_string() const {
  std::string text(code_name(code_));
  if (is_ok()) return text;
  return text.append("/").append(reason_).append(": ").append(detail_);
}

}  // namespace tonnage
