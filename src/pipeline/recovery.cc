// SPDX-License-Identifier: Apache-2.0
#include "pipeline/recovery.h"

#include <iterator>
#include <utility>

namespace tonnage::pipeline {
namespace {

using supervisor::RunFailure;

Recovery give_up(Group group, Verdict verdict) {
  Recovery recovery;
  recovery.failed = std::move(group.rows);
  recovery.verdict = verdict;
  return recovery;
}

Recovery halve(Group group) {
  const auto middle = static_cast<std::ptrdiff_t>(group.rows.size() / 2);
  Group second;
  second.suspect = group.suspect;
  second.rows.assign(std::make_move_iterator(group.rows.begin() + middle),
                     std::make_move_iterator(group.rows.end()));
  group.rows.resize(static_cast<std::size_t>(middle));
  Recovery recovery;
  recovery.retry.push_back(std::move(group));
  recovery.retry.push_back(std::move(second));
  return recovery;
}

Recovery split_or_try_alone(Group group, Verdict verdict) {
  if (group.rows.size() > 1) return halve(std::move(group));
  if (group.tries_alone >= kMaxAlone) return give_up(std::move(group), verdict);
  ++group.tries_alone;
  Recovery recovery;
  recovery.retry.push_back(std::move(group));
  return recovery;
}

Recovery one_by_one(Group group) {
  Recovery recovery;
  recovery.forgive_death = true;
  for (lane::QueuedRow& row : group.rows) {
    Group alone;
    alone.suspect = true;
    alone.rows.push_back(row);
    recovery.retry.push_back(std::move(alone));
  }
  return recovery;
}

Recovery after_death(Group group, bool idempotent) {
  if (!idempotent) return give_up(std::move(group), Verdict::kWorkerLost);
  if (group.rows.size() > 1) return one_by_one(std::move(group));
  if (group.suspect) {
    Recovery recovery = give_up(std::move(group), Verdict::kPoison);
    recovery.forgive_death = true;
    return recovery;
  }
  // It died alone the first time: once may be a kill from outside, twice is the row.
  group.suspect = true;
  Recovery recovery;
  recovery.retry.push_back(std::move(group));
  return recovery;
}

}  // namespace

Recovery recover(Group group, RunFailure failure, bool idempotent) {
  switch (failure) {
    case RunFailure::kOverGrant: return split_or_try_alone(std::move(group), Verdict::kNeverFits);
    case RunFailure::kPressure: return split_or_try_alone(std::move(group), Verdict::kPressure);
    case RunFailure::kModelError:
    case RunFailure::kBadOutput:
      if (group.rows.size() > 1 && idempotent) return halve(std::move(group));
      return give_up(std::move(group), Verdict::kModelError);
    case RunFailure::kStickyDevice:
    case RunFailure::kDied: return after_death(std::move(group), idempotent);
    case RunFailure::kWatchdog: return give_up(std::move(group), Verdict::kWatchdog);
  }
  return give_up(std::move(group), Verdict::kModelError);
}

Status verdict_status(Verdict verdict, const std::string& detail) {
  switch (verdict) {
    case Verdict::kModelError: return internal("model_error", "the model failed on this row: " + detail);
    case Verdict::kPoison:
      return internal("poison_row", "this row alone ends the model's worker: " + detail +
                                        "; the same row is refused for the next ten minutes");
    case Verdict::kNeverFits:
      return {Code::kTooLarge, "over_memory", "this row alone needs more memory than there is: " + detail};
    case Verdict::kPressure:
      return Status(Code::kOverloaded, "memory_pressure",
                    "the machine refused memory inside the model's grant: " + detail)
          .with_retry_after(1);
    case Verdict::kWatchdog:
      return internal("watchdog", "the batch ran far beyond its predicted time: " + detail);
    case Verdict::kWorkerLost: return internal("worker_lost", "the model's worker was lost: " + detail);
  }
  return internal("model_error", detail);
}

Status resting_status() {
  return Status(Code::kOverloaded, "degraded", "the model runs out of memory even with batches of one")
      .with_retry_after(1);
}

}  // namespace tonnage::pipeline
