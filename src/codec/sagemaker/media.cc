// SPDX-License-Identifier: Apache-2.0
#include "codec/sagemaker/media.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace tonnage::codec::sagemaker {
namespace {

constexpr std::array kReplyForms = {BodyForm::kJson, BodyForm::kJsonLines, BodyForm::kCsv};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// Takes the part in front of `mark` off `rest`.
std::string_view take_until(std::string_view& rest, char mark) {
  const std::size_t at = rest.find(mark);
  const std::string_view part = trimmed(rest.substr(0, at));
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return part;
}

// In thousandths; nothing where it is not a weight.
std::optional<int> parse_weight(std::string_view text) {
  double weight = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), weight, std::chars_format::fixed);
  if (error != std::errc() || stop != text.data() + text.size() || !(weight >= 0 && weight <= 1))
    return std::nullopt;
  return static_cast<int>(weight * 1000 + 0.5);
}

// How closely `range` names `type`: 0 not at all, 1 "*/*", 2 "text/*", 3 exactly.
int closeness(std::string_view range, std::string_view type) {
  if (range == type) return 3;
  if (range == "*/*") return 1;
  if (range.ends_with("/*") && type.starts_with(range.substr(0, range.size() - 1))) return 2;
  return 0;
}

// The weight that `accept` gives to `type`, in thousandths; 0 = not wanted.
int weight_of(std::string_view accept, std::string_view type) {
  int closest = 0;
  int weight = 0;
  while (!accept.empty()) {
    std::string_view item = take_until(accept, ',');
    const int close = closeness(lower(take_until(item, ';')), type);
    std::optional<int> own = 1000;
    while (!item.empty()) {
      const std::string parameter = lower(take_until(item, ';'));
      if (parameter.starts_with("q=")) own = parse_weight(trimmed(std::string_view(parameter).substr(2)));
    }
    if (close > closest && own) {
      closest = close;
      weight = *own;
    }
  }
  return weight;
}

}  // namespace

std::string_view media_type(BodyForm form) {
  switch (form) {
    case BodyForm::kCsv: return "text/csv";
    case BodyForm::kJsonLines: return "application/jsonlines";
    case BodyForm::kText: return "text/plain";
    default: return "application/json";
  }
}

Result<BodyForm> body_form(std::string_view content_type, bool takes_text) {
  const std::string type = lower(take_until(content_type, ';'));
  if (type.empty()) return BodyForm::kJson;
  for (const BodyForm form : kReplyForms) {
    if (type == media_type(form)) return form;
  }
  if (takes_text && type == media_type(BodyForm::kText)) return BodyForm::kText;
  return Status(
      Code::kUnsupportedMedia, "content_type",
      fmt::format(
          "content type '{}' is not supported; send application/json, application/jsonlines{} text/csv{}",
          type.substr(0, 64), takes_text ? "," : " or", takes_text ? " or text/plain" : ""));
}

Result<BodyForm> reply_form(std::string_view accept, BodyForm request) {
  BodyForm best = request == BodyForm::kText ? BodyForm::kJson : request;
  if (trimmed(accept).empty()) return best;
  int weight = weight_of(accept, media_type(best));
  for (const BodyForm form : kReplyForms) {
    if (const int own = weight_of(accept, media_type(form)); own > weight) {
      best = form;
      weight = own;
    }
  }
  if (weight > 0) return best;
  return Status(
      Code::kNotAcceptable, "accept",
      fmt::format("accept '{}' names nothing that can be answered: application/json, application/jsonlines, "
                  "text/csv",
                  accept.substr(0, 128)));
}

}  // namespace tonnage::codec::sagemaker
