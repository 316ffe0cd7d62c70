// SPDX-License-Identifier: Apache-2.0
#include "report/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/json_text.h"
#include "report/heat_map.h"

namespace tonnage::app {
namespace {

using server::GridPoint;
using server::Inspection;

// |predicted − measured| ÷ measured, over the points that were measured.
struct Errors {
  std::size_t measured = 0;
  double median = 0;
  double worst = 0;
};

Errors peak_errors(const Inspection& seen) {
  std::vector<double> errors;
  for (const GridPoint& point : seen.grid) {
    if (!point.seen || point.seen->peak == Bytes()) continue;
    const auto measured = static_cast<double>(point.seen->peak.count());
    errors.push_back(std::abs(static_cast<double>(point.peak.count()) - measured) / measured);
  }
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {errors.size(), errors[errors.size() / 2], errors.back()};
}

std::string headline(const Inspection& seen) {
  const Errors errors = peak_errors(seen);
  return fmt::format(
      "{} version {}, route {}, {}: weights {}, base {}, {}; {} of {} shapes measured, predicted peak off by "
      "{:.2f} % "
      "(median), {:.2f} % (worst)",
      seen.spec->name, seen.spec->version, seen.spec->route, seen.loaded.runtime,
      format_bytes(seen.memory.weights), format_bytes(seen.memory.base),
      cost::determinism_name(seen.determinism), errors.measured, seen.grid.size(), errors.median * 100,
      errors.worst * 100);
}

std::string rows_text(std::uint32_t rows, std::uint32_t most) {
  if (rows == 0) return "none";
  return rows == most ? fmt::format("{} (max_rows)", rows) : std::to_string(rows);
}

std::string value_text(const GridPoint& point, bool of_time) {
  if (of_time) return fmt::format("{:.1f} ms", to_millis(point.seen ? point.seen->time : point.time));
  return format_bytes(point.seen ? point.seen->peak : point.peak);
}

HeatMap heat_map(const Inspection& seen, bool of_time) {
  HeatMap map;
  map.title = of_time ? "Time of a batch" : "Peak bytes of a batch";
  map.x_name = seen.spec->has_length() ? "padded length →" : "";
  map.y_name = "rows ↓";
  std::vector<std::uint32_t> lengths;
  std::vector<std::uint32_t> rows;
  for (const GridPoint& point : seen.grid) {
    if (std::ranges::find(lengths, point.shape.length) == lengths.end())
      lengths.push_back(point.shape.length);
    if (std::ranges::find(rows, point.shape.rows) == rows.end()) rows.push_back(point.shape.rows);
  }
  for (const std::uint32_t length : lengths) map.columns.push_back(length == 0 ? "" : std::to_string(length));
  for (const std::uint32_t row : rows) map.rows.push_back(std::to_string(row));
  map.cells.resize(lengths.size() * rows.size());
  for (const GridPoint& point : seen.grid) {
    const auto column =
        static_cast<std::size_t>(std::ranges::find(lengths, point.shape.length) - lengths.begin());
    const auto row = static_cast<std::size_t>(std::ranges::find(rows, point.shape.rows) - rows.begin());
    const double value = of_time ? to_millis(point.seen ? point.seen->time : point.time)
                                 : static_cast<double>((point.seen ? point.seen->peak : point.peak).count());
    map.cells[row * lengths.size() + column] =
        HeatCell{value, value_text(point, of_time), !point.seen, !point.fits};
  }
  return map;
}

}  // namespace

std::string profile_text(const Inspection& seen) {
  std::string out = headline(seen) + "\n\n";
  out += fmt::format("  {:>5} {:>7} {:>12} {:>12} {:>12} {:>10} {:>10}\n", "rows", "length", "predicted",
                     "measured", "grant", "time", "measured");
  for (const GridPoint& point : seen.grid) {
    out += fmt::format("  {:>5} {:>7} {:>12} {:>12} {:>12} {:>8.1f}ms {:>10}{}\n", point.shape.rows,
                       point.shape.length, format_bytes(point.peak),
                       point.seen ? format_bytes(point.seen->peak) : "-", format_bytes(point.grant),
                       to_millis(point.time),
                       point.seen ? fmt::format("{:.1f}ms", to_millis(point.seen->time)) : "-",
                       point.fits ? "" : "  does not fit");
  }
  out += fmt::format("\n  largest batch in a budget of {}, and with {} more:\n", format_bytes(seen.budget),
                     format_bytes(server::kOneMore));
  const std::uint32_t most = seen.spec->batching.max_rows;
  for (const server::LargestBatch& largest : seen.largest) {
    out += fmt::format("    length {:>5}: {:>14} {:>14}\n", largest.length, rows_text(largest.rows, most),
                       rows_text(largest.rows_more, most));
  }
  return out;
}

std::string profile_json(const Inspection& seen) {
  const Errors errors = peak_errors(seen);
  std::string out = fmt::format(
      "{{\"name\":{},\"version\":{},\"route\":{},\"runtime\":{},\"weights_bytes\":{},\"base_bytes\":{},"
      "\"budget_bytes\":{},\"determinism\":\"{}\",\"margin\":{:.6f},\"measured\":{},\"peak_error_median\":{:."
      "6f},"
      "\"peak_error_worst\":{:.6f},\"grid\":[",
      json_string(seen.spec->name), json_string(seen.spec->version), json_string(seen.spec->route),
      json_string(seen.loaded.runtime), seen.memory.weights.count(), seen.memory.base.count(),
      seen.budget.count(), cost::determinism_name(seen.determinism), seen.margin, errors.measured,
      errors.median, errors.worst);
  for (const GridPoint& point : seen.grid) {
    out += fmt::format(
        "{}{{\"rows\":{},\"length\":{},\"peak_bytes\":{},\"grant_bytes\":{},\"time_ms\":{:.3f},\"fits\":{}",
        &point == seen.grid.data() ? "" : ",", point.shape.rows, point.shape.length, point.peak.count(),
        point.grant.count(), to_millis(point.time), point.fits);
    if (point.seen) {
      out += fmt::format(",\"measured_peak_bytes\":{},\"measured_time_ms\":{:.3f}", point.seen->peak.count(),
                         to_millis(point.seen->time));
    }
    out += "}";
  }
  out += "],\"largest_batch\":[";
  for (const server::LargestBatch& largest : seen.largest) {
    out += fmt::format("{}{{\"length\":{},\"rows\":{},\"rows_with_one_more_gib\":{}}}",
                       &largest == seen.largest.data() ? "" : ",", largest.length, largest.rows,
                       largest.rows_more);
  }
  return out + "]}\n";
}

std::string profile_html(const Inspection& seen) {
  const std::uint32_t most = seen.spec->batching.max_rows;
  std::string rows;
  for (const server::LargestBatch& largest : seen.largest) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", largest.length,
                        rows_text(largest.rows, most), rows_text(largest.rows_more, most));
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}: what its batches cost</title>\n"
      "<style>body{{font:15px "
      "system-ui,sans-serif;margin:2rem;max-width:70rem}}table{{border-collapse:collapse}}"
      "td,th{{padding:.2rem .8rem;text-align:right;border-bottom:1px solid "
      "#ccd}}svg{{max-width:100%;height:auto}}</style>\n"
      "<h1>{0}</h1>\n<p>{1}.</p>\n<p>Dashed: predicted, not measured. Crossed out: does not fit into "
      "{2}.</p>\n{3}\n{4}\n"
      "<h2>Largest batch</h2>\n<table><tr><th>length</th><th>rows in {2}</th><th>with {5} "
      "more</th></tr>\n{6}</table>\n"
      "</html>\n",
      escape_markup(seen.spec->name), escape_markup(headline(seen)), format_bytes(seen.budget),
      heat_map_svg(heat_map(seen, false)), heat_map_svg(heat_map(seen, true)), format_bytes(server::kOneMore),
      rows);
}

}  // namespace tonnage::app
