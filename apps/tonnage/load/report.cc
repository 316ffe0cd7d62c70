// SPDX-License-Identifier: Apache-2.0
#include "load/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json_text.h"

namespace tonnage::load {
namespace {

double per_second(std::uint64_t count, Duration time) {
  return time > Duration(0) ? static_cast<double>(count) / to_seconds(time) : 0;
}
// Saturated, the tail after the last request was sent would only blur the rate.
double window_rps(const Results& results, const RunTimes& run, const DriveOptions& options) {
  const Duration from = options.warmup;
  return per_second(results.answered_between(from, run.sending), run.sending - from);
}
Duration counted_time(const RunTimes& run, const DriveOptions& options) {
  return std::max(run.elapsed - options.warmup, Duration(0));
}

void append_row(std::string& out, std::string_view name, std::string_view range, const ClassResult& result) {
  fmt::format_to(std::back_inserter(out), "  {:<7} {:>8} {:>9} {:>9} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n",
                 name, range, result.sent, result.answered, to_millis(result.latency.quantile(0.5)),
                 to_millis(result.latency.quantile(0.9)), to_millis(result.latency.quantile(0.99)),
                 to_millis(result.latency.max()));
}

void append_latency(std::string& out, std::string_view name, const ClassResult& result) {
  const auto ms = [&](double share) { return to_millis(result.latency.quantile(share)); };
  fmt::format_to(
      std::back_inserter(out),
      R"("{}":{{"sent":{},"answered":{},"p50":{:.3f},"p90":{:.3f},"p99":{:.3f},"p999":{:.3f},"max":{:.3f}}})",
      name, result.sent, result.answered, ms(0.5), ms(0.9), ms(0.99), ms(0.999),
      to_millis(result.latency.max()));
}

}  // namespace

std::string table(const Results& results, const RunTimes& run, const DriveOptions& options) {
  std::string out = fmt::format("  {:<7} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "class", "tokens",
                                "sent", "answered", "p50 ms", "p90 ms", "p99 ms", "max ms");
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (results.of_class(i).sent > 0)
      append_row(out, kClassNames.at(i), kClassRanges.at(i), results.of_class(i));
  }
  append_row(out, "all", "", results.all());
  auto end = std::back_inserter(out);
  fmt::format_to(end, "{} of {} requests answered in {:.1f} s ({:.1f}/s), {} distinct lengths\n",
                 results.answered(), results.sent(), to_seconds(run.elapsed),
                 per_second(results.answered(), counted_time(run, options)), results.distinct_lengths());
  if (results.good() != results.answered()) {
    fmt::format_to(end, "{} answered within the deadline\n", results.good());
  }
  for (const auto& [reason, count] : results.refusals())
    fmt::format_to(end, "  not answered: {:<24} {}\n", reason, count);
  if (results.truncated_rows() > 0)
    fmt::format_to(end, "  rows truncated by the model's rule: {}\n", results.truncated_rows());
  return out;
}

std::string json_object(const Results& results, const RunTimes& run, const DriveOptions& options) {
  std::string out = "{";
  auto end = std::back_inserter(out);
  const Duration counted = counted_time(run, options);
  fmt::format_to(end, R"("sent":{},"answered":{},"refused":{},"refused_by":{{)", results.sent(),
                 results.answered(), results.refused());
  bool first = true;
  for (const auto& [reason, count] : results.refusals()) {
    fmt::format_to(end, "{}{}:{}", first ? "" : ",", json_string(reason), count);
    first = false;
  }
  fmt::format_to(
      end,
      R"(}},"elapsed_s":{:.3f},"rps":{:.2f},"window_rps":{:.2f},"goodput":{:.2f},"offered_rate":{:.2f},)"
      R"("outstanding":{},"distinct_lengths":{},"truncated_rows":{},"latency_ms":{{)",
      to_seconds(run.elapsed), per_second(results.answered(), counted), window_rps(results, run, options),
      per_second(results.good(), counted), options.rate, options.rate > 0 ? 0 : options.outstanding,
      results.distinct_lengths(), results.truncated_rows());
  for (std::size_t i = 0; i < kClasses; ++i) {
    append_latency(out, kClassNames.at(i), results.of_class(i));
    out += ',';
  }
  append_latency(out, "all", results.all());
  return out + "}}";
}

void ProgressPrinter::show(const Progress& progress) {
  if (!is_terminal_ && progress.elapsed - shown_ < seconds(2)) return;
  shown_ = progress.elapsed;
  const auto text = fmt::format("{} sent, {} answered, {} refused, {} in flight", progress.sent,
                                progress.answered, progress.refused, progress.outstanding + progress.waiting);
  if (is_terminal_) {
    constexpr int kWidth = 30;
    const int done = static_cast<int>(share_done(progress) * kWidth);
    fmt::print(out_, "\r\x1b[K[{:#<{}}{:.<{}}] {}", "", done, "", kWidth - done, text);
  } else {
    fmt::print(out_, "load: {:3.0f} %, {:.0f} s: {}\n", share_done(progress) * 100,
               to_seconds(progress.elapsed), text);
  }
  std::fflush(out_);
}

void ProgressPrinter::clear() {
  if (is_terminal_) fmt::print(out_, "\r\x1b[K");
}

double ProgressPrinter::share_done(const Progress& progress) const {
  double share = 0;
  if (options_.requests > 0) {
    share =
        static_cast<double>(progress.answered + progress.refused) / static_cast<double>(options_.requests);
  }
  if (options_.duration > Duration(0)) {
    share = std::max(share, to_seconds(progress.elapsed) / to_seconds(options_.warmup + options_.duration));
  }
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace tonnage::load
