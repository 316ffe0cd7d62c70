// SPDX-License-Identifier: Apache-2.0
// Profiler: which shape to measure next. Pure; the caller runs the shapes and feeds the samples back.
//
// Promises:
//  1. Only reachable shapes: rows ≤ max, predicted time ≤ the lane's bound (one row always goes),
//     predicted bytes ≤ free; at most `max_shapes`, `max_halvings` of promise 4, and `profile_budget`.
//  2. Small first. The corners are always measured: one row at both ends of the length, and for each
//     length the most rows that are reachable; so extrapolation never decides about an admissible row.
//  3. Everything between the corners stops early once five shapes in a row were predicted within 1 %.
//  4. Where the program changes between two lengths (a shape takes less than what the others say of it, or a
//     part jumps with the length) they are halved until two that are near have the change between them.
//  5. Then repeats with other values (deterministic or not): the smallest shape eight times, a middle
//     and the largest one twice; and, while half of the budget lasts, each shape twice for the median
//     of its times.
//  6. What was learned outlives the worker it was learned on: a step that took its worker along comes once
//     more, with all there is; then nothing as large is tried again, and no further edge.
//  7. With `ends_with_largest` the largest shape that was measured is the last step, whatever the time.
// Owes: each step is answered by add(), refused(), lost() or put_back() before the next one is asked for.
// Threads: the loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "cost/cost_model.h"

namespace tonnage::cost {

struct ProfileLimits {
  Bytes free;  // grant that the worker could get now
  Duration max_batch_time = milliseconds(500);
  Duration profile_budget = seconds(20);
  std::uint32_t max_shapes = 40;
  std::uint32_t max_halvings = 20;  // a grid of 1 … 128 rows and 16 … 512 tokens takes all 40 shapes alone
  // A device's allocator keeps what the largest shape took, in one piece, for all that follow.
  bool ends_with_largest = false;
};

struct ProfileStep {
  Shape shape;
  Bytes grant;             // to run it with
  std::uint32_t seed = 0;  // different values for repeats of a shape
  bool is_repeat = false;
};

class Profiler {
 public:
  Profiler(const CostOptions& options, const ProfileLimits& limits);

  // Nothing: profiling is over; then take_model() is fitted, if any shape could be measured.
  std::optional<ProfileStep> next(Duration elapsed);
  void add(const ProfileStep& step, const Sample& sample);
  void refused(const ProfileStep& step, Bytes needed);  // over grant: needed was at least this
  void lost(const ProfileStep& step);                   // the worker did not survive it
  void put_back(const ProfileStep& step);               // it was not run
  // Another worker goes on, which could get this much now.
  void go_on(Bytes free) { limits_.free = free; }
  bool has_measured() const { return !measured_.empty(); }
  double progress() const;  // 0 … 1
  CostModel take_model();

 private:
  struct Candidate {
    Shape shape;
    bool is_corner = false;
    bool is_done = false;
    std::uint32_t edge_tries = 0;
  };

  std::optional<ProfileStep> next_shape();
  std::optional<ProfileStep> next_in_gap();
  std::optional<ProfileStep> next_edge();
  std::optional<ProfileStep> next_repeat();
  std::optional<ProfileStep> last_step();
  bool has_all_shapes() const { return measured_.size() >= limits_.max_shapes + halvings_; }
  bool is_reachable(Shape shape) const;
  bool is_infeasible(Shape shape) const;
  bool was_measured(Shape shape) const;
  std::uint32_t most_rows(std::uint32_t length) const;
  ProfileStep step_for(Shape shape) const;
  void plan_repeats();

  CostOptions options_;
  ProfileLimits limits_;
  CostModel model_;
  std::vector<Candidate> candidates_;  // small first
  std::vector<Shape> measured_;
  std::vector<Shape> infeasible_;  // need more than `free`
  std::vector<ProfileStep> repeats_;
  std::size_t next_repeat_ = 0;
  std::size_t must_repeat_ = 0;  // the first of them decide about determinism
  std::uint32_t halvings_ = 0;
  bool repeats_planned_ = false;
  bool had_last_step_ = false;
  std::optional<Shape> edge_to_warm_;  // measured once, cold
  bool edges_are_over_ = false;        // one of them ended workers: the others are not approached
  std::uint32_t good_in_a_row_ = 0;
  double share_of_budget_ = 0;
  std::optional<ProfileStep> again_;  // the refused step with a larger grant
};

}  // namespace tonnage::cost
