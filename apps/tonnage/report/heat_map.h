// SPDX-License-Identifier: Apache-2.0
// heat_map_svg: a table of numbers as one self-contained SVG, darker for more (logarithmic).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tonnage::app {

struct HeatCell {
  double value = 0;       // > 0; decides the shade
  std::string text;       // written into the cell
  bool is_faint = false;  // predicted only: shown lighter, with a dashed frame
  bool is_out = false;    // does not fit: no shade, crossed out
};

struct HeatMap {
  std::string title;
  std::string x_name;
  std::string y_name;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::optional<HeatCell>> cells;  // row by row
};

std::string heat_map_svg(const HeatMap& map);
// For text inside HTML and SVG.
std::string escape_markup(std::string_view text);

}  // namespace tonnage::app
