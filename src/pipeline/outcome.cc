// SPDX-License-Identifier: Apache-2.0
// What becomes of a batch that ended.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "batch/split.h"
#include "pipeline/pipeline.h"
#include "supervisor/names.h"

namespace tonnage::pipeline {
namespace {

using supervisor::RunFailure;

// The work of a row is the basis of queue bounds; it follows the cost model at this pace.
constexpr std::uint64_t kRefreshEvery = 64;

// Of rows whose request left meanwhile nothing is read: any size will do.
std::vector<model::RowSize> sizes_of(const InFlight& batch, OpenRequests& open) {
  std::vector<model::RowSize> sizes;
  for (const lane::QueuedRow& row : batch.group.rows) {
    const request::Request* request = open.find(row.request);
    for (std::uint32_t i = 0; i < row.units; ++i) {
      sizes.push_back(request == nullptr ? batch.padded : request->row_size(row.row + i));
    }
  }
  return sizes;
}

}  // namespace

void Pipeline::finished(ServedModel& model, WorkerSlot& slot, supervisor::RunOutcome outcome) {
  TONNAGE_CHECK(slot.in_flight.has_value(), "an outcome without a batch");
  InFlight batch = std::move(*slot.in_flight);
  slot.in_flight.reset();
  if (slot.worker == nullptr) return;  // everything goes, and every request was answered before
  const Duration took = host_.loop.now() - batch.started;
  arbiter_.charge(batch.lane_number, took - batch.predicted);
  if (const auto* done = std::get_if<supervisor::RunDone>(&outcome)) {
    slot.learn_pace(from_seconds(to_seconds(batch.predicted) * model.drift()), took);
    deliver(model, slot, batch, *done);
  } else {
    failed(model, slot, std::move(batch), std::get<supervisor::RunFailed>(outcome));
  }
  if (model.ladder.is_resting()) divert_waiting(model);
  schedule_drive();
}

void Pipeline::deliver(ServedModel& model, const WorkerSlot& slot, const InFlight& batch,
                       const supervisor::RunDone& done) {
  const std::vector<model::RowSize> sizes = sizes_of(batch, open_);
  const Status proven =
      batch::check_outputs(*model.spec, done.outputs, sizes.size(), Bytes(done.region.size()));
  if (!proven.is_ok()) {
    return carry_out(model, recover(batch.group, RunFailure::kBadOutput, model.spec->idempotent),
                     proven.detail());
  }
  BatchRecord record;
  record.rows = batch.shape.rows;
  for (const model::RowSize& size : sizes) record.real_tokens += model.spec->length_of(size);
  record.padded_tokens = std::uint64_t{batch.shape.rows} * batch.shape.length;
  record.predicted = model.cost->predict_peak(batch.shape);
  record.grant = batch.grant;
  record.peak = done.peak;
  model.stats.add(record);
  if (model.metrics) model.metrics->executed(record, done.round_trip);
  model.stats.longest = std::max(model.stats.longest, batch.shape.length);
  // What a worker for long rows takes is its pace, and says nothing of the others' times.
  const bool has_own_pace = slot.serves == Serves::kLong;
  model.cost->observe(
      {batch.shape, done.peak, has_own_pace ? model.cost->predict_time(batch.shape) : done.round_trip});
  model.ladder.clean_batch(host_.loop.now());
  ++model.observed.batches;
  if (model.stats.batches % kRefreshEvery == 0) model.refresh_row_work();

  const batch::SplitBatch split{*model.spec, done.outputs, sizes, batch.padded, done.region};
  std::vector<std::byte> scratch;
  std::uint32_t position = 0;
  for (const lane::QueuedRow& row : batch.group.rows) {
    for (std::uint32_t i = 0; i < row.units; ++i, ++position) {
      auto outputs = batch::split_row(split, position, scratch);
      if (!outputs.is_ok()) {
        ++model.stats.failed;
        open_.fail(row.request, outputs.status());
        continue;
      }
      open_.put_row(row.request, row.row + i, *outputs);
    }
  }
}

void Pipeline::failed(ServedModel& model, WorkerSlot& slot, InFlight batch,
                      const supervisor::RunFailed& failure) {
  host_.log.warn("batch_failed", {{"model", model.spec->name},
                                  {"rows", std::uint64_t{batch.shape.rows}},
                                  {"length", std::uint64_t{batch.shape.length}},
                                  {"failure", supervisor::failure_name(failure.failure)},
                                  {"detail", failure.detail}});
  const bool learned = failure.failure == RunFailure::kOverGrant;
  bool moved = false;
  if (learned) {
    ++model.stats.over_grants;
    // What fails as predicted teaches nothing, and is no trouble.
    if (!batch.beyond_prediction) {
      model.cost->observe_over_grant(batch.shape, std::max(failure.needed, batch.grant + Bytes(1)));
      moved = model.ladder.trouble(Trouble::kOverGrant, batch.shape.rows);
    }
  } else if (failure.failure == RunFailure::kPressure) {
    ++model.stats.pressures;
    moved = model.ladder.trouble(Trouble::kPressure, batch.shape.rows);
    if (slot.worker->is_idle()) slot.worker->trim();
  }
  if (moved) {
    host_.log.warn("degraded", {{"model", model.spec->name},
                                {"rung", rung_name(model.ladder.rung())},
                                {"step", std::uint64_t{model.ladder.step()}},
                                {"max_rows", std::uint64_t{model.ladder.max_rows()}}});
  }
  // Rare, and dear to learn twice: the next start knows it.
  if (moved || learned) save_profile(model);
  if (moved && model.ladder.is_resting()) model.resting_since = host_.loop.now();
  if (moved && model.ladder.rung() == Rung::kCachesReleased) {
    for (WorkerSlot& each : model.workers) each.worker->trim();
  }
  if (batch.beyond_prediction) batch.group.tries_alone = kMaxAlone;  // there is no more to be had
  Recovery recovery = recover(std::move(batch.group), failure.failure, model.spec->idempotent);
  if (recovery.forgive_death) slot.worker->forgive_last_death();
  carry_out(model, std::move(recovery), failure.detail);
}

void Pipeline::carry_out(ServedModel& model, Recovery recovery, const std::string& detail) {
  // A client may have left while its rows ran. Not before the decision: the row that is left of a batch of
  // two need not be the guilty one.
  for (Group& group : recovery.retry) {
    std::erase_if(group.rows,
                  [this](const lane::QueuedRow& row) { return open_.find(row.request) == nullptr; });
  }
  std::erase_if(recovery.retry, [](const Group& group) { return group.rows.empty(); });
  for (auto group = recovery.retry.rbegin(); group != recovery.retry.rend(); ++group) {
    model.stats.retried_rows += group->rows.size();
    model.retries.push_front(std::move(*group));
  }
  for (const lane::QueuedRow& row : recovery.failed) {
    const request::Request* request = open_.find(row.request);
    if (request == nullptr) continue;
    ++model.stats.failed;
    if (recovery.verdict == Verdict::kPoison) {
      ++model.stats.poison_rows;
      model.poison.remember(content_hash(*request, row.row, row.units), host_.loop.now());
    }
    open_.fail(row.request, verdict_status(recovery.verdict, fmt::format("row {}: {}", row.row, detail)));
  }
}

}  // namespace tonnage::pipeline
