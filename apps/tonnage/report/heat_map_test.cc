// SPDX-License-Identifier: Apache-2.0
#include "report/heat_map.h"

#include <gtest/gtest.h>

namespace tonnage::app {
namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

HeatMap two_by_two() {
  HeatMap map;
  map.title = "Peak";
  map.columns = {"32", "64"};
  map.rows = {"1", "2"};
  map.cells = {HeatCell{1, "1 MiB"}, HeatCell{10, "10 MiB"}, HeatCell{100, "100 MiB", true},
               HeatCell{1000, "1000 MiB", false, true}};
  return map;
}

TEST(HeatMap, EachCellIsDrawnWithItsText) {
  const std::string svg = heat_map_svg(two_by_two());
  EXPECT_EQ(4U, count(svg, "<rect"));
  for (const char* text : {">1 MiB<", ">10 MiB<", ">100 MiB<", ">1000 MiB<"})
    EXPECT_EQ(1U, count(svg, text)) << text;
}

TEST(HeatMap, TheSmallestIsLightAndTheLargestThatFitsIsDark) {
  const std::string svg = heat_map_svg(two_by_two());
  EXPECT_EQ(1U, count(svg, "rgb(239,246,252)"));
  EXPECT_EQ(1U, count(svg, "rgb(8,64,129)")) << "what does not fit decides no shade";
}

TEST(HeatMap, WhatWasNotMeasuredIsDashedAndWhatDoesNotFitIsCrossedOut) {
  const std::string svg = heat_map_svg(two_by_two());
  EXPECT_EQ(2U, count(svg, "stroke-dasharray"));
  EXPECT_EQ(1U, count(svg, "<path"));
}

TEST(HeatMap, NamesOfModelsCannotBecomeMarkup) {
  HeatMap map = two_by_two();
  map.title = "<script>\"a\" & b";
  const std::string svg = heat_map_svg(map);
  EXPECT_EQ(0U, count(svg, "<script>"));
  EXPECT_NE(std::string::npos, svg.find("&lt;script&gt;&quot;a&quot; &amp; b"));
}

TEST(HeatMap, OneCellAloneIsNoDivisionByZero) {
  HeatMap map;
  map.columns = {""};
  map.rows = {"1"};
  map.cells = {HeatCell{5, "5"}};
  EXPECT_EQ(std::string::npos, heat_map_svg(map).find("nan"));
}

}  // namespace
}  // namespace tonnage::app
