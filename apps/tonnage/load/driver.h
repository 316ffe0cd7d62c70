// SPDX-License-Identifier: Apache-2.0
// run_requests: sends a workload and waits for every answer.
//
// Promises:
//  1. Open loop (rate > 0): request i is due at the i-th arrival, whatever became of the others; what
//     cannot be sent at once waits in a queue of its own and its latency counts from when it was due.
//  2. Saturating (rate 0): `outstanding` requests are in flight until enough were sent.
//  3. Every request sent gives one sample, in the order of the answers; a run ends when all are in, at
//     the latest `patience` after the last was due (then: no_reply).
// Threads: one. Fails with: connect_failed when not one connection could be made.
#pragma once

#include <functional>
#include <optional>

#include "load/arrivals.h"
#include "load/client.h"
#include "load/results.h"
#include "load/workload.h"

namespace tonnage::load {

struct DriveOptions {
  double rate = 0;  // requests/s; 0: saturate
  Spacing spacing = Spacing::kPoisson;
  std::uint32_t outstanding = 64;
  std::uint64_t requests = 0;  // 0: until `duration`
  Duration duration{0};
  Duration warmup{0};
  std::uint32_t max_connections = 1024;
  Duration patience = seconds(120);
  bool keep_bodies = false;
};

struct Progress {
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::uint64_t refused = 0;
  std::uint32_t outstanding = 0;
  std::uint64_t waiting = 0;  // due, but not sent yet
  Duration elapsed{};
};

struct Observer {
  std::function<void(const Sample&)> on_sample;
  std::function<void(const Progress&)> on_progress;  // a few times a second
  std::function<bool()> wants_stop;                  // true: send no more
};

struct RunTimes {
  Duration sending{};  // until the last request was sent
  Duration elapsed{};  // until the last answer
};

Result<RunTimes> run_requests(Endpoint endpoint, Workload& workload, const DriveOptions& options,
                              const Observer& observer);

}  // namespace tonnage::load
