// SPDX-License-Identifier: Apache-2.0
// Sizes of rows: padding, grouping, and the one length that everything above schedules by.
#include <algorithm>

#include "model/spec.h"

namespace tonnage::model {
namespace {

constexpr std::size_t kNone = kMaxSizes;
constexpr int kHalvings = 48;

std::uint32_t padded_to(std::uint32_t value, const SizeSpec& size) {
  const std::uint64_t step = std::max(size.multiple, 1U);
  const std::uint64_t rounded = (std::max<std::uint64_t>(value, 1) + step - 1) / step * step;
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(value, std::min<std::uint64_t>(rounded, size.max)));
}

// The last padded size: rows that differ in it alone are one group, as rows of different length are.
std::size_t meeting_size(const std::vector<SizeSpec>& sizes) {
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i].meet == MeetRule::kPad) return i;
  }
  return kNone;
}

// The largest sizes × share, down to a multiple.
RowSize scaled(const std::vector<SizeSpec>& sizes, double share) {
  RowSize size;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto wanted = static_cast<std::uint32_t>(sizes[i].max * share);
    size.at[i] = std::max(wanted / sizes[i].multiple * sizes[i].multiple, 1U);
  }
  return size;
}

}  // namespace

RowSize ModelSpec::largest_size() const {
  if (sizes.empty()) return max_length;
  RowSize largest;
  for (std::size_t i = 0; i < sizes.size(); ++i) largest.at[i] = sizes[i].max;
  return largest;
}

RowSize ModelSpec::padded_size(const RowSize& row) const {
  if (sizes.empty()) return padded(row.at[0]);
  RowSize padded;
  for (std::size_t i = 0; i < sizes.size(); ++i) padded.at[i] = padded_to(row.at[i], sizes[i]);
  return padded;
}

std::uint32_t ModelSpec::length_of(const RowSize& row) const {
  if (sizes.empty()) return row.at[0];
  std::uint64_t positions = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) positions *= row.at[i];
  return static_cast<std::uint32_t>((positions + positions_per_unit - 1) / positions_per_unit);
}

std::uint32_t ModelSpec::group_of(const RowSize& row) const {
  const std::size_t meeting = meeting_size(sizes);
  const RowSize padded = padded_size(row);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i == meeting) continue;
    const std::uint32_t step = std::max(sizes[i].multiple, 1U);
    // Numbered 1 … ⌈max ÷ step⌉; that all groups have a number was checked at load.
    group = group * ((sizes[i].max + step - 1) / step + 1) + (padded.at[i] + step - 1) / step;
  }
  return group;
}

RowSize ModelSpec::size_of_length(std::uint32_t length) const {
  if (sizes.empty()) return length;
  if (length >= max_length) return largest_size();
  const RowSize smallest = padded_size(scaled(sizes, 0));
  // The sizes grow with the share, so halving finds the last ones that are not too long.
  double fits = 0;
  double beyond = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (fits + beyond) / 2;
    (length_of(padded_size(scaled(sizes, middle))) <= length ? fits : beyond) = middle;
  }
  return fits > 0 ? padded_size(scaled(sizes, fits)) : smallest;
}

std::string_view ModelSpec::size_name(std::size_t size) const {
  return sizes.empty() ? std::string_view("length") : sizes.at(size).name;
}

}  // namespace tonnage::model
