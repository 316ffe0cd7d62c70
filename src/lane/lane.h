// SPDX-License-Identifier: Apache-2.0
// Lane: the waiting rows of one model version and class, oldest first inside a priority.
//
// Promises:
//  1. Bounded in rows, and in predicted seconds up to the one request that crosses the bound (so that
//     long rows are not the only ones refused). A refused push keeps nothing.
//  2. Order: priority (1 highest … 255, then 0: no wish), then arrival. window() shows the oldest rows
//     without copying the lane.
//  3. take() and remove() free a row's place at once; remove() costs the request's rows only.
// Does not: watch deadlines. Whoever answers a request whose deadline passed removes its rows.
// Threads: the loop. Owns: row records; requests stay in request::Table.
// Fails with: overloaded/lane_full.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "request/request.h"

namespace tonnage::lane {

struct QueuedRow {
  request::RequestId request;
  std::uint32_t row = 0;    // first row in the request
  std::uint32_t units = 1;  // rows that stay together
  std::uint32_t length = 0;
  std::uint32_t group = 0;  // only rows of one group meet
  std::uint8_t priority = 0;
  TimePoint enqueued{};
  TimePoint deadline = kNever;
  Duration work{};  // predicted seconds of this row, for the bound
};

struct LaneLimits {
  std::uint32_t max_rows = 4096;
  Duration max_work = seconds(30);
};

class Lane {
 public:
  explicit Lane(const LaneLimits& limits);
  ~Lane();
  Lane(Lane&&) noexcept;

  // All rows of one request or none.
  Status push(std::span<const QueuedRow> rows);
  // Rows that were taken but did not run return to their old place (by `enqueued`). Never refused:
  // they were admitted once.
  void put_back(std::span<const QueuedRow> rows);
  // The oldest rows, at most `limit`, valid until the next change of the lane.
  std::span<const QueuedRow> window(std::size_t limit);
  // Takes rows out by their index in the last window(). Rows that left since are skipped, so a plan's
  // batch and its drops may be taken one after the other.
  std::vector<QueuedRow> take(std::span<const std::uint16_t> indices);
  // All rows of a request that left.
  std::size_t remove(request::RequestId request);

  // Rows that wait already stay.
  void set_max_work(Duration max_work);

  std::size_t rows() const;
  Duration work() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::lane
