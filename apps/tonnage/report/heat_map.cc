// SPDX-License-Identifier: Apache-2.0
#include "report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tonnage::app {
namespace {

constexpr int kCellWidth = 92;
constexpr int kCellHeight = 28;
constexpr int kLeft = 96;
constexpr int kTop = 64;

struct Range {
  double low = 0;
  double high = 0;
};

// Of the logarithms.
Range range_of(const HeatMap& map) {
  Range range{INFINITY, -INFINITY};
  for (const auto& cell : map.cells) {
    if (!cell || cell->is_out || cell->value <= 0) continue;
    range.low = std::min(range.low, std::log(cell->value));
    range.high = std::max(range.high, std::log(cell->value));
  }
  return range;
}

// From near white to a deep blue.
std::string shade_of(double share) {
  const auto mix = [share](double from, double to) { return static_cast<int>(from + (to - from) * share); };
  return fmt::format("rgb({},{},{})", mix(239, 8), mix(246, 64), mix(252, 129));
}

void append_cell(std::string& out, const HeatCell& cell, int x, int y, const Range& range) {
  const double span = range.high - range.low;
  const double share = span > 0 && cell.value > 0 ? (std::log(cell.value) - range.low) / span : 0;
  const bool is_dark = share > 0.55 && !cell.is_out;
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{}\" "
      "stroke=\"#889\"{}/>\n",
      x, y, kCellWidth, kCellHeight, cell.is_out ? "#f4f4f4" : shade_of(share), cell.is_faint ? "0.6" : "1",
      cell.is_faint || cell.is_out ? " stroke-dasharray=\"3 3\"" : "");
  if (cell.is_out) {
    out += fmt::format("<path d=\"M{} {}l{} {}\" stroke=\"#c66\"/>\n", x, y + kCellHeight, kCellWidth,
                       -kCellHeight);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n",
                     x + kCellWidth / 2, y + 19, is_dark ? "#fff" : "#222", escape_markup(cell.text));
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string heat_map_svg(const HeatMap& map) {
  const int columns = static_cast<int>(map.columns.size());
  const int rows = static_cast<int>(map.rows.size());
  const int width = kLeft + columns * kCellWidth + 8;
  const int height = kTop + rows * kCellHeight + 12;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"system-ui,sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
      "<text x=\"0\" y=\"16\" font-size=\"15\" font-weight=\"600\">{2}</text>\n"
      "<text x=\"{3}\" y=\"36\" fill=\"#556\">{4}</text><text x=\"0\" y=\"{5}\" fill=\"#556\">{6}</text>\n",
      width, height, escape_markup(map.title), kLeft, escape_markup(map.x_name), kTop - 8,
      escape_markup(map.y_name));
  const Range range = range_of(map);
  for (int column = 0; column < columns; ++column) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       kLeft + column * kCellWidth + kCellWidth / 2, kTop - 8,
                       escape_markup(map.columns[static_cast<std::size_t>(column)]));
  }
  for (int row = 0; row < rows; ++row) {
    const int y = kTop + row * kCellHeight;
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 8, y + 19,
                       escape_markup(map.rows[static_cast<std::size_t>(row)]));
    for (int column = 0; column < columns; ++column) {
      const auto& cell = map.cells[static_cast<std::size_t>(row * columns + column)];
      if (cell) append_cell(out, *cell, kLeft + column * kCellWidth, y, range);
    }
  }
  return out + "</svg>\n";
}

}  // namespace tonnage::app
