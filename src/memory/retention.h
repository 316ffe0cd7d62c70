// SPDX-License-Identifier: Apache-2.0
// Retention: does a model keep bytes with every request? Told from live tensor bytes after each batch,
// against what was live when it was ready.
//
// Promises:
//  1. Bytes count as retained where a shape leaves more behind than when it was new, less what shapes new
//     since then have brought, and more than was retained before. So a cache by shape, a cache that is
//     emptied now and then, an output kept until the next batch, and a high-water mark that rises with the
//     order of the work are no retention.
//  2. A model that keeps kNamedBytesPerRow or more with each row is named within 50 rows that come one by
//     one, in larger batches after twelve whose shapes were seen before: four stretches of three that all
//     grew, so that one step is no reason, and at most one in eight left less than the last batch of its
//     shape, so that ups and downs are none either.
//  3. It ends when four stretches in a row brought nothing.
// A row stands for a request. What is live is the worker's own word: good for telemetry and for replacing
// the worker, never for the ledger.
// Pure; the clock is an argument. Threads: values. Time per batch: one look-up.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/bytes.h"
#include "base/time.h"

namespace tonnage::memory {

// What is kept, and when it reaches the limit at the present pace.
struct RetentionForecast {
  bool is_named = false;
  Bytes kept{};              // live above the baseline
  double bytes_per_row = 0;  // the rest only where it is named
  std::uint64_t rows_left = UINT64_MAX;
  Duration time_left = Duration::max();
};

class Retention {
 public:
  static constexpr double kNamedBytesPerRow = 1000;
  enum class Change : std::uint8_t { kNone, kNamed, kEnded };

  explicit Retention(Bytes live_when_ready) : baseline_(live_when_ready), last_live_(live_when_ready) {}

  Change observe(std::uint32_t rows, std::uint32_t length, Bytes live, TimePoint now);
  bool is_named() const { return is_named_; }
  // `room`: by how much live bytes may still grow.
  RetentionForecast forecast(Bytes room) const;

 private:
  // A batch of a shape: its first one, or the first one after other shapes were new.
  struct Mark {
    double brought = 0;      // by new shapes until then
    double unexplained = 0;  // live after it, less that
    double level = 0;        // then
    Bytes last{};            // live after the last batch of the shape
  };
  struct Stretch {
    double level_before = 0;
    double grown = 0;
    std::uint64_t rows = 0;  // of shapes seen before; the new ones explain themselves
    std::uint32_t repeats = 0;
    std::uint32_t falls = 0;  // repeats that left less behind than the last time
    TimePoint began{};
    std::uint64_t rows_before = 0;  // of all batches
  };
  static constexpr std::uint32_t kStretchRepeats = 3;
  static constexpr std::size_t kStretches = 4;
  static constexpr std::size_t kMostShapes = 8192;

  Change finish_stretch(TimePoint now);
  double kept_per_row() const;

  Bytes baseline_;
  Bytes last_live_;
  double brought_by_new_shapes_ = 0;
  double level_ = 0;  // retained so far; only ever rises
  std::uint64_t rows_ = 0;
  std::unordered_map<std::uint64_t, Mark> marks_;
  Stretch open_{};
  std::array<Stretch, kStretches> stretches_{};  // a ring
  std::size_t finished_ = 0;
  TimePoint last_at_{};
  bool is_named_ = false;
};

}  // namespace tonnage::memory
