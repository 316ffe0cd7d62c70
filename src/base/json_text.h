// SPDX-License-Identifier: Apache-2.0
// Writing JSON text: escaping, for logs, metrics and wire bodies. Reading JSON is codec's business.
#pragma once

#include <string>
#include <string_view>

namespace tonnage {

// Appends "text" with quotes, escaped. Bytes that are not UTF-8 are replaced by U+FFFD.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);
// Appends a number that every JSON reader takes: NaN and infinities become null.
void append_json_number(std::string& out, double value);

}  // namespace tonnage
