// SPDX-License-Identifier: Apache-2.0
// What is known of the memory of a process: read from the kernel, or told by it and then telemetry only.
#include "supervisor/detail/worker_state.h"

namespace tonnage::supervisor {

const memory::Lease* Worker::State::granting() const {
  if (!lease) return nullptr;
  return device ? &device->lease() : &*lease;
}

std::optional<memory::ProcessReading> Worker::State::read_memory() {
  if (!process) return std::nullopt;
  auto now = process->reading();
  if (!now) return std::nullopt;  // it is gone, its exit comes
  reading = *now;
  read_at = host.loop.now();
  return *now;
}

// Asked for between two batches: what is read here and what it answers belong to the same moment.
void Worker::State::ask_stats() {
  if (!lease || ending || is_stopping || resident_when_asked) return;
  wants_stats = flight.has_value();
  if (wants_stats || !read_memory()) return;
  if (!process->send({0, wire::Stat{}}, {}).is_ok()) return;
  resident_when_asked = reading.anonymous;
  ran_since_stats = false;
}

void Worker::State::on_stats(const wire::Stats& stats) {
  if (!resident_when_asked)
    return end_process(ExitReason::Kind::kProtocol, "stats without having been asked");
  // Weights and tensors of a model on a device are no part of what is resident here.
  accounts = memory::explain({.resident = *resident_when_asked,
                              .libraries = stats.libraries,
                              .weights = device ? Bytes() : told_weights,
                              .live_baseline = device ? Bytes() : live_baseline,
                              .live = device ? Bytes() : stats.live,
                              .heap = stats.heap,
                              .heap_used = stats.heap_used});
  resident_when_asked.reset();
}

memory::RetentionForecast Worker::State::retention_forecast() const {
  const memory::Lease* const held = granting();
  if (!retention || held == nullptr) return {};
  // What the model keeps takes from what its largest batch may still have.
  return retention->forecast(saturating_sub(held->largest_grant(), held->highest_peak()));
}

void Worker::State::watch_retention() {
  using Change = memory::Retention::Change;
  const Change change = retention->observe(flight->rows, flight->length, live, host.loop.now());
  if (change == Change::kNone) return;
  if (change == Change::kEnded) return host.log.info("retention_ended", {{"worker", options.name}});
  const memory::RetentionForecast seen = retention_forecast();
  host.log.warn("retention", {{"worker", options.name},
                              {"kept_bytes", seen.kept.count()},
                              {"bytes_per_row", seen.bytes_per_row},
                              {"rows_left", seen.rows_left},
                              {"seconds_left", to_seconds(seen.time_left)}});
}

}  // namespace tonnage::supervisor
