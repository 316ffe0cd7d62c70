// SPDX-License-Identifier: Apache-2.0
// Admission: may this request come in? A pure decision on a snapshot; the pipeline fills the snapshot
// and carries the decision out.
//
// Promises:
//  1. What can never fit is refused at once (too_large/never_fits) with predicted bytes, the limit and
//     the largest admissible length.
//  2. Predicted waiting time beyond the deadline is refused (overloaded/queue_time) with
//     Retry-After = ceil(max(1, wait − deadline)) seconds + 0–25 % jitter.
//  3. A model that is not ready refuses (unavailable/not_ready) with the reason.
//  4. The first that applies decides: not ready, never fits, expired, overloaded.
// Threads: any. Fails with: the above; deadline_exceeded/expired.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"
#include "cost/cost_model.h"
#include "model/spec.h"

namespace tonnage::admission {

// The lane's load, as the pipeline sees it.
struct Load {
  Duration work_ahead{};  // predicted seconds ordered before this request
  Duration residual{};    // of the running batch
  Duration batch{};       // of the full batch that it will share, where the work ahead fills one
  double share = 1.0;     // of the time of its workers that this model gets (planner/share.h)
  std::uint32_t workers = 1;
  double actual_over_predicted = 1.0;  // smoothed; the times above are without it
};

struct Question {
  const model::ModelSpec* spec = nullptr;
  const cost::CostModel* cost = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t longest = 0;  // longest row's length
  Bytes envelope;
  Bytes ingress_limit;           // what one request may hold in the front at most
  Bytes largest_possible_grant;  // with everything else given back; less will do where it is enough
  bool ready = true;
  std::string not_ready_why;  // where it is not
  Load load;                  // where there is a deadline
  TimePoint now{};
  TimePoint deadline = kNever;
  double jitter = 0;  // in [0, 1)
};

Duration predicted_wait(const Load& load);
// What the batch with the request's longest row takes at least; needs `cost`.
Bytes needed_grant(const Question& question);
// Largest length of a single row whose grant fits into `limit`; 0: none.
std::uint32_t largest_admissible_length(const cost::CostModel& cost, const model::ModelSpec& spec,
                                        Bytes limit);
Status decide(const Question& question);
// The same without what is predicted: not ready, more rows or envelope than there can be, expired.
Status decide_by_facts(const Question& question);

}  // namespace tonnage::admission
