// SPDX-License-Identifier: Apache-2.0
// What a run says: a table for people, one JSON object for programs, one line per request for --save,
// and progress on the way.
#pragma once

#include <cstdio>
#include <string>

#include "load/driver.h"
#include "load/results.h"

namespace tonnage::load {

std::string table(const Results& results, const RunTimes& run, const DriveOptions& options);
std::string json_object(const Results& results, const RunTimes& run, const DriveOptions& options);
// One line of --save, with its newline. Replies of classifiers give `label` and `score` (SageMaker) or
// `scores`, the first output's numbers when they are few (V2).
std::string save_line(const Sample& sample, std::uint64_t index);

// On a terminal a bar that redraws itself; otherwise a line every two seconds, the first after two.
class ProgressPrinter {
 public:
  ProgressPrinter(std::FILE* out, bool is_terminal, const DriveOptions& options)
      : out_(out), is_terminal_(is_terminal), options_(options) {}
  void show(const Progress& progress);
  void clear();

 private:
  double share_done(const Progress& progress) const;

  std::FILE* out_;
  bool is_terminal_;
  const DriveOptions& options_;
  Duration shown_{};
};

}  // namespace tonnage::load
