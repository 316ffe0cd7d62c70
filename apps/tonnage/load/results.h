// SPDX-License-Identifier: Apache-2.0
// Results: what came of every request, and the sums that people and scripts read.
// Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "load/histogram.h"
#include "load/mix.h"

namespace tonnage::load {

struct Sample {
  LengthClass length_class = LengthClass::kShort;
  std::uint32_t tokens = 0;
  std::optional<std::uint32_t> text;  // which text of the file, counted from 0
  std::uint32_t truncated = 0;
  bool is_warmup = false;  // answered, not counted
  Duration start{};        // intended, from the start of the run
  Duration latency{};      // from the intended start to the last byte
  int status = 0;          // 0: no reply
  std::string reason;      // "ok", the server's X-Tonnage-Reason, or why there is no reply
  std::string body;        // kept only where asked for

  bool is_answered() const { return status == 200; }
};

struct ClassResult {
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  Histogram latency;  // of answered requests
};

class Results {
 public:
  explicit Results(Duration goal) : goal_(goal) {}

  void add(const Sample& sample);

  std::uint64_t sent() const { return all_.sent; }
  std::uint64_t answered() const { return all_.answered; }
  std::uint64_t refused() const { return all_.sent - all_.answered; }
  std::uint64_t good() const { return good_; }  // answered within the goal (a deadline), if there is one
  std::uint64_t truncated_rows() const { return truncated_; }
  std::size_t distinct_lengths() const { return lengths_.size(); }
  const std::map<std::string, std::uint64_t>& refusals() const { return refusals_; }
  const ClassResult& of_class(std::size_t i) const { return classes_.at(i); }
  const ClassResult& all() const { return all_; }
  // Counted replies that ended in [from, until), for the rate of a saturated server.
  std::uint64_t answered_between(Duration from, Duration until) const;

 private:
  Duration goal_;
  std::array<ClassResult, kClasses> classes_;
  ClassResult all_;
  std::map<std::string, std::uint64_t> refusals_;
  std::set<std::uint32_t> lengths_;
  std::vector<Duration> ends_;
  std::uint64_t good_ = 0;
  std::uint64_t truncated_ = 0;
};

}  // namespace tonnage::load
