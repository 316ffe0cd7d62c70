// SPDX-License-Identifier: Apache-2.0
// What happens to the rows of a batch that failed. Pure: same group and failure, same decision.
//
// Promises:
//  1. Every row of the group is either in one retry group or in `failed`, exactly once.
//  2. A batch of n rows that throws is rerun by halves: at most 2·log2(n) + 1 runs find one guilty row.
//  3. A batch whose worker died is rerun row by row; a row that dies alone is guilty (poison): one
//     poison row costs two deaths, whoever shared its batch is answered.
//  4. Over-grant and pressure split; alone they are tried again at most kMaxAlone times, then refused.
//  5. A watchdog kill is not retried.
// Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "lane/lane.h"
#include "supervisor/worker.h"

namespace tonnage::pipeline {

inline constexpr std::uint8_t kMaxAlone = 2;

// Rows to run together, and why they are run again.
struct Group {
  std::vector<lane::QueuedRow> rows;
  bool suspect = false;  // a worker died with these rows in it
  std::uint8_t tries_alone = 0;
};

enum class Verdict : std::uint8_t { kModelError, kPoison, kNeverFits, kPressure, kWatchdog, kWorkerLost };

struct Recovery {
  std::vector<Group> retry;  // in the order to run
  std::vector<lane::QueuedRow> failed;
  Verdict verdict = Verdict::kModelError;  // of `failed`
  bool forgive_death = false;              // the death was the price of finding a poison row
};

Recovery recover(Group group, supervisor::RunFailure failure, bool idempotent);
// The error that a client reads. `detail`: what the worker or the kernel said.
Status verdict_status(Verdict verdict, const std::string& detail);
// The same while the model rests (pipeline/ladder.h) and nobody runs its requests.
Status resting_status();

}  // namespace tonnage::pipeline
