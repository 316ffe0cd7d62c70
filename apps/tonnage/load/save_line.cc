// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "load/report.h"

namespace tonnage::load {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kFewNumbers = 16;

// {"predictions":[{"label":…,"score":…},…]}: the first row's.
void append_prediction(std::string& line, const Json& reply) {
  const Json rows = reply.value("predictions", Json());
  if (!rows.is_array() || rows.empty() || !rows.front().is_object()) return;
  const Json& row = rows.front();
  if (!row.value("label", Json()).is_string() || !row.value("score", Json()).is_number()) return;
  line += R"(,"label":)" + json_string(row["label"].get<std::string>()) + R"(,"score":)";
  append_json_number(line, row["score"].get<double>());
}

void append_scores(std::string& line, const Json& reply) {
  const Json outputs = reply.value("outputs", Json());
  if (!outputs.is_array() || outputs.empty() || !outputs.front().is_object()) return;
  const Json data = outputs.front().value("data", Json());
  if (!data.is_array() || data.size() > kFewNumbers) return;
  line += R"(,"scores":)" + data.dump();
}

}  // namespace

std::string save_line(const Sample& sample, std::uint64_t index) {
  std::string line;
  fmt::format_to(
      std::back_inserter(line),
      R"({{"request":{},"class":"{}","tokens":{},"start_s":{:.6f},"latency_ms":{:.3f},"status":{},"reason":)",
      index, kClassNames.at(static_cast<std::size_t>(sample.length_class)), sample.tokens,
      to_seconds(sample.start), to_millis(sample.latency), sample.status);
  append_json_string(line, sample.reason);
  if (sample.text) fmt::format_to(std::back_inserter(line), R"(,"text":{})", *sample.text);
  if (sample.truncated > 0)
    fmt::format_to(std::back_inserter(line), R"(,"truncated_rows":{})", sample.truncated);
  const Json reply = sample.body.empty() ? Json() : Json::parse(sample.body, nullptr, false);
  if (reply.is_object() && sample.is_answered()) {
    append_prediction(line, reply);
    append_scores(line, reply);
  }
  if (!sample.is_answered() && reply.is_object() && reply.value("error", Json()).is_string()) {
    line += R"(,"error":)" + json_string(reply["error"].get<std::string>());
  }
  return line + "}\n";
}

}  // namespace tonnage::load
