// SPDX-License-Identifier: Apache-2.0
// The text form: what was measured and learned, one `word number…` line each; the fits are made again
// from it, so that a better fit of a later version reads old profiles.
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/detail/state.h"

namespace tonnage::cost {
namespace {

constexpr std::string_view kHeader = "tonnage-profile 1";
constexpr std::size_t kMaxProfiled = 4096;

// Takes the next line, then its words.
std::string_view take(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

template <typename Number>
std::optional<Number> parse_number(std::string_view word) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

struct Line {
  std::string_view word;
  std::vector<std::int64_t> numbers;
};

std::optional<Line> parse_line(std::string_view text) {
  Line line{take(text, ' '), {}};
  while (!text.empty()) {
    const auto number = parse_number<std::int64_t>(take(text, ' '));
    if (!number || *number < 0) return std::nullopt;
    line.numbers.push_back(*number);
  }
  return line;
}

Status bad_profile(std::string_view why) {
  return invalid("bad_profile", fmt::format("a stored profile cannot be used: {}", why));
}

std::uint32_t narrow(std::int64_t number) {
  return number > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(number);
}

bool read_shape(const Line& line, CostModel::State& state) {
  const auto& n = line.numbers;
  if (n.size() < 6 || n[0] < 1 || n[2] > n[3] || n[4] < 1 || state.profile.size() == kMaxProfiled)
    return false;
  Profiled& entry = state.profiled({narrow(n[0]), narrow(n[1])});
  entry.peak.lowest = static_cast<std::uint64_t>(n[2]);
  entry.peak.highest = static_cast<std::uint64_t>(n[3]);
  entry.peak.runs = narrow(n[4]);
  entry.times.assign(n.begin() + 5, n.end());
  return true;
}

bool read_bucket(const Line& line, CostModel::State& state) {
  const auto& n = line.numbers;
  if (n.size() != 5 || static_cast<std::size_t>(n[0]) >= state.buckets.size()) return false;
  detail::Bucket& bucket = state.buckets[static_cast<std::size_t>(n[0])];
  bucket.bound = static_cast<double>(n[1]);
  bucket.running = static_cast<std::uint64_t>(n[2]);
  bucket.batches = narrow(n[3]);
  bucket.exact = n[4] != 0;
  return true;
}

}  // namespace

std::string CostModel::to_text() const {
  const State& s = *state_;
  std::string out = fmt::format("{}\noptions {} {} {}\n", kHeader, s.options.max_rows, s.options.pad_multiple,
                                s.options.max_length);
  if (s.determinism == Determinism::kValueDependent) out += "value_dependent\n";
  for (const Profiled& entry : s.profile) {
    out += fmt::format("shape {} {} {} {} {}", entry.peak.shape.rows, entry.peak.shape.length,
                       entry.peak.lowest, entry.peak.highest, entry.peak.runs);
    for (const std::int64_t time : entry.times) out += fmt::format(" {}", time);
    out += '\n';
  }
  for (std::size_t i = 0; i < s.buckets.size(); ++i) {
    const detail::Bucket& bucket = s.buckets[i];
    if (bucket.bound == 0 && bucket.batches == 0) continue;
    out += fmt::format("bucket {} {:.0f} {} {} {}\n", i, bucket.bound, bucket.recent_max(), bucket.batches,
                       bucket.exact ? 1 : 0);
  }
  return out;
}

Result<CostModel> CostModel::from_text(std::string_view text, const CostOptions& options) {
  if (take(text, '\n') != kHeader) return bad_profile("it was written by another version");
  const std::string expected =
      fmt::format("options {} {} {}", options.max_rows, options.pad_multiple, options.max_length);
  if (take(text, '\n') != expected)
    return bad_profile("it was made for other limits of rows, padding or length");
  CostModel model(options);
  State& state = *model.state_;
  while (!text.empty()) {
    const auto line = parse_line(take(text, '\n'));
    if (!line) return bad_profile("a line holds what is not a number");
    if (line->word == "value_dependent") {
      state.determinism = Determinism::kValueDependent;
    } else if (line->word == "shape" ? !read_shape(*line, state) : !read_bucket(*line, state)) {
      return bad_profile(fmt::format("a '{}' line is damaged", line->word));
    }
  }
  if (!model.fit().is_ok()) return bad_profile("it has no measured shape");
  return model;
}

}  // namespace tonnage::cost
