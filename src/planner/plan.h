// SPDX-License-Identifier: Apache-2.0
// plan_lane: the next batch of one lane. Pure: same view, limits and time, same plan.
//
// Promises:
//  1. For a non-empty lane a batch, a drop or a wake time is set; nothing waits for ever.
//  2. No batch has more units than max_rows, more predicted bytes than `free`, or (policies dp and
//     buckets) more predicted time than `max_batch_time`, except that a single row always goes when
//     its bytes fit.
//  3. Order: must start now (cannot wait for one more batch of max_batch_time; least slack) > older than
//     max_age > rows per second; then the oldest row. README.md of this room states the objective and
//     the starvation bound, which is simulated.
//  4. Rows that cannot meet their deadline even alone and at once, or that have more units than the
//     table knows, are drops; a row whose bytes exceed `free` only waits.
//  5. Allocates nothing: all work happens in the PlanScratch, at most kMaxWindow rows.
// Objective (docs/adr/0011): fewest missed deadlines; class; sum of predicted times of the partition;
// oldest row. Source: dynamic program over sorted lengths: TurboTransformers, arXiv 2010.05680.
// Threads: any (values). Fails: cannot.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/time.h"
#include "cost/table.h"
#include "model/spec.h"
#include "planner/lane_view.h"

namespace tonnage::planner {

inline constexpr std::size_t kMaxWindow = 512;
inline constexpr std::size_t kMaxBatchRows = 256;

struct PlanLimits {
  const cost::CostTable* cost = nullptr;
  model::Policy policy = model::Policy::kDp;
  model::MeetRule meet = model::MeetRule::kPad;
  std::span<const std::uint32_t> edges;  // policy buckets; ascending
  std::uint32_t max_rows = 64;           // after the degradation ladder
  Bytes free;                            // largest grant a worker could get now
  Duration max_batch_time = milliseconds(250);
  Duration max_age = milliseconds(500);
  Duration max_wait{0};  // of a batch below its cap, while a worker is idle
  bool a_worker_is_idle = true;
  bool lengths_are_padded = false;  // models with sizes: nothing is rounded to the table's columns
  double drift = 1.0;               // actual ÷ predicted time, beyond what the table holds already
};

struct Plan {
  enum class Kind : std::uint8_t { kIdle, kRun, kWake };
  Kind kind = Kind::kIdle;
  std::span<const std::uint16_t> batch;  // indices into LaneView::rows; lives in the scratch
  std::span<const std::uint16_t> drops;
  std::uint32_t units = 0;
  std::uint32_t length = 0;  // padded
  Bytes grant;
  Duration time{};
  TimePoint must_start_by = kNever;
  TimePoint wake_at = kNever;
  bool waits_for_memory = false;  // rows exist, but none fits into `free`
  bool some_wait = false;         // at least one row does not fit into `free`
};

// Reused working memory; sized once.
class PlanScratch {
 public:
  PlanScratch();
  ~PlanScratch();
  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

Plan plan_lane(const LaneView& lane, const PlanLimits& limits, TimePoint now, PlanScratch& scratch);

}  // namespace tonnage::planner
