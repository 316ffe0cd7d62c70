// SPDX-License-Identifier: Apache-2.0
#include "supervisor/worker.h"

#include <type_traits>
#include <utility>

#include "supervisor/detail/worker_state.h"

namespace tonnage::supervisor {

Worker::State::State(WorkerOptions worker_options, Host worker_host, std::function<void()> changed)
    : options(std::move(worker_options)),
      host(worker_host),
      on_change(std::move(changed)),
      base_account(host.account.child("base")),
      weights_account(host.account.child("weights")),
      loading_account(host.account.child("loading")),
      lease_account(host.account.child("lease")) {
  if (host.device) device.emplace(host.device->account, host.device->driver);
}

Worker::State::~State() {
  alive.reset();
  process.reset();
  if (!flight) return;
  auto done = std::move(flight->done);
  done(RunFailed{RunFailure::kDied, "the worker was taken down", {}, {}});
}

void Worker::State::announce() {
  if (state == announced) return;
  announced = state;
  if (on_change) on_change();
}

void Worker::State::on_packet(wire::Packet packet) {
  if (ending) return;
  const std::uint64_t ticket = packet.message.ticket;
  auto& body = packet.message.body;
  if (auto* done = std::get_if<wire::Done>(&body)) return on_done(ticket, std::move(*done));
  if (auto* error = std::get_if<wire::Error>(&body)) return on_error(ticket, std::move(*error));
  if (auto* need = std::get_if<wire::Need>(&body)) return on_need(ticket, *need);
  if (auto* trimmed = std::get_if<wire::Trimmed>(&body)) return on_trimmed(*trimmed);
  if (auto* ready = std::get_if<wire::Loaded>(&body)) return on_loaded(*ready, std::move(packet.fds));
  if (auto* failed = std::get_if<wire::Failed>(&body)) return on_failed(*failed);
  if (auto* stats = std::get_if<wire::Stats>(&body)) return on_stats(*stats);
  // The rest is only the front's to say.
  end_process(ExitReason::Kind::kProtocol, "unasked message " + std::string(wire::message_name(body)));
}

Worker::Worker(WorkerOptions options, Host host, std::function<void()> on_change)
    : state_(std::make_unique<State>(std::move(options), host, std::move(on_change))) {}
Worker::~Worker() = default;

void Worker::start() {
  if (!state_->process && !state_->is_stopping) state_->try_start();
}
void Worker::stop(Duration grace) { state_->stop(grace); }
void Worker::memory_released() {
  if (state_->waits_for_memory && !state_->process) state_->try_start();
}

WorkerState Worker::state() const { return state_->state; }
const WorkerOptions& Worker::options() const { return state_->options; }
const std::optional<wire::LoadedDoc>& Worker::loaded() const { return state_->loaded; }
Status Worker::last_error() const { return state_->last_error; }
std::uint64_t Worker::deaths() const { return state_->deaths; }
bool Worker::has_process() const { return state_->process != nullptr; }
pid_t Worker::pid() const { return state_->process ? state_->process->pid() : 0; }

MutableByteView Worker::input_slot(std::uint32_t slot) {
  TONNAGE_CHECK(is_idle(), "a slot of a worker that is not idle was asked for");
  return state_->segments->slot(slot).view();
}

Bytes Worker::charged() const {
  const State& s = *state_;
  if (s.device) return s.device->charged();
  return s.base.amount() + s.weights.amount() + s.loading.amount() + (s.lease ? s.lease->amount() : Bytes()) +
         (s.segments ? s.segments->charged() : Bytes());
}

Bytes Worker::largest_grant() const {
  const memory::Lease* lease = state_->granting();
  return lease != nullptr ? lease->largest_grant() : Bytes();
}

Bytes Worker::largest_grant_when_trimmed() const {
  const memory::Lease* lease = state_->granting();
  return lease != nullptr ? lease->largest_grant_when_trimmed() : Bytes();
}

Bytes Worker::growth_for(Bytes grant) const {
  const memory::Lease* lease = state_->granting();
  return lease != nullptr ? lease->needed_for(grant) - lease->amount() : grant;
}

Status Worker::run(RunCommand command, UniqueFunction<void(RunOutcome)> done) {
  return state_->run(std::move(command), std::move(done));
}

void Worker::trim() { state_->trim(); }
bool Worker::is_trimming() const { return state_->trim_asked.has_value() || state_->wants_trim; }
bool Worker::is_overdrawn() const {
  return std::max(state_->host.account.overdraft(), state_->device ? state_->device->overdraft() : Bytes()) >
         Bytes();
}

void Worker::kill(std::string_view why) {
  if (state_->process) state_->end_process(ExitReason::Kind::kSignal, std::string(why));
}

void Worker::forgive_last_death() { state_->forgive_last_death(); }

Bytes Worker::lease() const {
  const memory::Lease* lease = state_->granting();
  return lease != nullptr ? lease->amount() : Bytes();
}

WorkerMemory Worker::memory() const {
  const State& s = *state_;
  const memory::Lease* granting = s.granting();
  WorkerMemory memory{s.base.amount(),
                      s.weights.amount(),
                      s.lease ? s.lease->amount() : Bytes(),
                      granting != nullptr ? granting->grant() : Bytes(),
                      s.lease ? s.lease->highest_slack() : Bytes(),
                      s.live_baseline,
                      s.live,
                      s.reading,
                      s.retention_forecast(),
                      s.accounts};
  if (s.device) {
    memory.device =
        DeviceMemory{s.device->base(), s.device->weights(),
                     s.device->is_ready() ? s.device->lease().amount() : Bytes(), s.device->use()};
  }
  return memory;
}

}  // namespace tonnage::supervisor
