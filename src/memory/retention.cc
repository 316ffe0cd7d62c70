// SPDX-License-Identifier: Apache-2.0
#include "memory/retention.h"

#include <algorithm>
#include <utility>

namespace tonnage::memory {
namespace {

constexpr std::uint32_t kMostFalls = 8;  // one repeat of so many

}  // namespace

Retention::Change Retention::observe(std::uint32_t rows, std::uint32_t length, Bytes live, TimePoint now) {
  if (rows_ == 0) open_.began = now;
  rows_ += rows;
  last_at_ = now;
  const auto live_now = static_cast<double>(live.count());
  const double more = live_now - static_cast<double>(std::exchange(last_live_, live).count());
  // An unpadded model may show any number of shapes; to forget them delays the verdict, and no more.
  if (marks_.size() >= kMostShapes) marks_.clear();
  const auto [found, is_new] = marks_.try_emplace(std::uint64_t{rows} << 32 | length);
  Mark& mark = found->second;
  if (is_new) {
    brought_by_new_shapes_ += std::max(0.0, more);
    mark = {brought_by_new_shapes_, live_now - brought_by_new_shapes_, level_, live};
    return Change::kNone;
  }
  const double unexplained = live_now - brought_by_new_shapes_;
  level_ = std::max(level_, mark.level + unexplained - mark.unexplained);
  ++open_.repeats;
  open_.rows += rows;
  if (live < std::exchange(mark.last, live)) ++open_.falls;
  if (mark.brought < brought_by_new_shapes_) mark = {brought_by_new_shapes_, unexplained, level_, live};
  return open_.repeats < kStretchRepeats ? Change::kNone : finish_stretch(now);
}

Retention::Change Retention::finish_stretch(TimePoint now) {
  open_.grown = level_ - open_.level_before;
  stretches_[finished_++ % kStretches] =
      std::exchange(open_, {.level_before = level_, .began = now, .rows_before = rows_});
  if (finished_ < kStretches) return Change::kNone;
  const bool all_grew = std::ranges::all_of(stretches_, [](const Stretch& s) { return s.grown > 0; });
  std::uint32_t repeats = 0;
  std::uint32_t falls = 0;
  for (const Stretch& stretch : stretches_) {
    repeats += stretch.repeats;
    falls += stretch.falls;
  }
  const double kept = kept_per_row();
  if (!is_named_ && all_grew && kMostFalls * falls <= repeats && kept >= kNamedBytesPerRow) {
    is_named_ = true;
    return Change::kNamed;
  }
  if (is_named_ && kept <= 0) {
    is_named_ = false;
    return Change::kEnded;
  }
  return Change::kNone;
}

double Retention::kept_per_row() const {
  double grown = 0;
  std::uint64_t rows = 0;
  for (const Stretch& stretch : stretches_) {
    grown += stretch.grown;
    rows += stretch.rows;
  }
  return rows == 0 ? 0 : grown / static_cast<double>(rows);
}

RetentionForecast Retention::forecast(Bytes room) const {
  RetentionForecast out{.is_named = is_named_, .kept = saturating_sub(last_live_, baseline_)};
  const double kept = kept_per_row();
  if (!is_named_ || kept <= 0) return out;
  out.bytes_per_row = kept;
  const double rows_left = static_cast<double>(room.count()) / kept;
  out.rows_left = static_cast<std::uint64_t>(std::min(rows_left, 0x1.0p62));
  const Stretch& oldest = stretches_[finished_ % kStretches];
  const double passed = to_seconds(last_at_ - oldest.began);
  const auto rows = static_cast<double>(rows_ - oldest.rows_before);
  if (passed > 0) out.time_left = from_seconds(std::min(rows_left * passed / rows, 1e9));
  return out;
}

}  // namespace tonnage::memory
