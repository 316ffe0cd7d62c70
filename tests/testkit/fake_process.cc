// SPDX-License-Identifier: Apache-2.0
#include "testkit/fake_process.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <utility>

namespace tonnage::testkit {
namespace {

using supervisor::ExitReason;

UniqueFd duplicate(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

wire::TensorLayout rows_of_floats(std::uint32_t rows, std::int64_t columns) {
  const std::array<std::int64_t, 2> dims{std::int64_t{rows}, columns};
  const auto shape = tensor::Shape::make(dims).value();
  return {tensor::DataType::kFp32, shape, 0, shape.bytes_of(tensor::DataType::kFp32).count()};
}

}  // namespace

std::vector<wire::TensorLayout> echo_outputs(const FakeBatch& batch) {
  for (const auto& input : batch.run.inputs) {
    std::memcpy(batch.output.subspan(input.offset, input.bytes).data(),
                batch.input.subspan(input.offset, input.bytes).data(), input.bytes);
  }
  return batch.run.inputs;
}

std::vector<wire::TensorLayout> row_sums(const FakeBatch& batch) {
  const auto& input = batch.run.inputs.at(0);
  const auto values = as_elements<std::int64_t>(batch.input.subspan(input.offset, input.bytes));
  auto layout = rows_of_floats(batch.run.rows, 1);
  const auto sums = as_elements<float>(batch.output.first(layout.bytes));
  const std::size_t columns = values.size() / std::max<std::size_t>(1, batch.run.rows);
  for (std::size_t row = 0; row < batch.run.rows; ++row) {
    float sum = 0;
    for (const std::int64_t value : values.subspan(row * columns, columns)) sum += static_cast<float>(value);
    sums[row] = sum;
  }
  return {std::move(layout)};
}

std::function<std::vector<wire::TensorLayout>(const FakeBatch&)> blank_outputs(std::int64_t columns) {
  return [columns](const FakeBatch& batch) { return std::vector{rows_of_floats(batch.run.rows, columns)}; };
}

FakeProcess::FakeProcess(FakeFactory& factory, pid_t pid, supervisor::ProcessEvents events)
    : factory_(factory), pid_(pid), events_(std::move(events)) {}

FakeProcess::~FakeProcess() { std::erase(factory_.living_, this); }

void FakeProcess::after(Duration delay, UniqueFunction<void()> fn) {
  work_ = factory_.loop_.call_after(delay, std::move(fn));
}

Status FakeProcess::send(const wire::Message& message, std::span<const int> fds) {
  if (refuses_messages_) return {Code::kUnavailable, "peer_closed", ""};
  if (is_exiting_) return Status::ok();
  if (factory_.keeps_names) received_.emplace_back(wire::message_name(message.body));
  if (const auto* load = std::get_if<wire::Load>(&message.body)) on_load(*load, fds);
  if (const auto* run = std::get_if<wire::Run>(&message.body)) on_run(message.ticket, *run);
  if (const auto* region = std::get_if<wire::Region>(&message.body)) on_region(*region, fds);
  if (std::holds_alternative<wire::Discard>(message.body)) {
    after(Duration(1), [this] { fail_run(wire::ErrorKind::kBadOutput, peak_, {}, "discarded"); });
  }
  if (std::holds_alternative<wire::Trim>(message.body)) {
    after(Duration(1), [this] {
      resident_ = std::min(resident_, factory_.model.retained);
      say({0, wire::Trimmed{factory_.model.weights, told_resident()}});
    });
  }
  if (std::holds_alternative<wire::Stat>(message.body)) {
    stats_ = factory_.loop_.call_after(Duration(1), [this] { answer_stat(); });
  }
  if (std::holds_alternative<wire::Stop>(message.body) && ticket_ == 0)
    exit_later({ExitReason::Kind::kStatus, 0});
  return Status::ok();
}

void FakeProcess::kill() { exit_later({ExitReason::Kind::kSignal, SIGKILL}); }

Result<memory::ProcessReading> FakeProcess::reading() const {
  const FakeModel& model = factory_.model;
  const bool is_here = model.device.empty();
  const Bytes anonymous = model.base + (is_here ? model.weights + resident_ : Bytes());
  const Bytes peak = model.base + (is_here ? model.weights + highest_ : Bytes()) + mib(8);
  return memory::ProcessReading{anonymous, mib(8), Bytes(), peak, anonymous + mib(50)};
}

Bytes FakeProcess::device_use() const {
  const FakeModel& model = factory_.model;
  return model.device.empty() ? Bytes() : model.context + model.weights + resident_;
}

Bytes FakeProcess::told_resident() const {
  const FakeModel& model = factory_.model;
  return model.device.empty() ? reading().value().anonymous : model.weights + resident_;
}

Status FakeProcess::limit_data(Bytes limit) {
  data_limit_ = limit;
  return Status::ok();
}

void FakeProcess::say(wire::Message message, std::vector<UniqueFd> fds) {
  if (!is_exiting_) events_.on_packet({std::move(message), std::move(fds)});
}

void FakeProcess::say_nonsense() {
  if (!is_exiting_) events_.on_bad_packet(invalid("bad_message", "the magic is wrong"));
}

void FakeProcess::die(ExitReason reason) {
  is_exiting_ = true;
  work_.reset();
  stats_.reset();
  exit_.reset();
  auto on_exit = std::move(events_.on_exit);  // which destroys this
  on_exit(reason);
}

void FakeProcess::exit_later(ExitReason reason) {
  if (std::exchange(is_exiting_, true)) return;
  work_.reset();
  exit_ = factory_.loop_.call_after(factory_.model.exit_time, [this, reason] { die(reason); });
}

void FakeProcess::on_load(const wire::Load& load, std::span<const int> fds) {
  region_bytes_ = Bytes(load.output_bytes);
  if (factory_.model.with_data) {
    for (std::uint32_t i = 0; i < wire::kInputSlots; ++i) {
      slots_[i] =
          wire::Segment::open(duplicate(fds[1 + i]), Bytes(load.slot_bytes), wire::Access::kReadOnly).value();
    }
    output_ = wire::Segment::open(duplicate(fds.back()), region_bytes_, wire::Access::kReadWrite).value();
  }
  after(factory_.model.load_time, [this] { answer_load(); });
}

void FakeProcess::answer_load() {
  const FakeModel& model = factory_.model;
  if (model.dies_loading) return die({ExitReason::Kind::kSignal, SIGABRT});
  if (model.load_failure) return say({0, *model.load_failure});
  std::vector<UniqueFd> fds;
  wire::LoadedDoc loaded = model.loaded;
  if (!model.device.empty()) {
    loaded.facts["device"] = model.device;
    loaded.facts["reserved_bytes"] = std::to_string(model.weights.count());
  }
  fds.push_back(wire::sealed_text("loaded", to_json(loaded)).value());
  say({0, wire::Loaded{model.weights, model.weights}}, std::move(fds));
}

FakeBatch FakeProcess::batch() {
  Bytes input_bytes;
  for (const auto& input : run_.inputs) input_bytes += Bytes(input.bytes);
  if (!output_) return {run_, input_bytes, {}, {}};
  return {run_, input_bytes, slots_[run_.slot]->view(), output_->view()};
}

void FakeProcess::on_run(std::uint64_t ticket, const wire::Run& run) {
  ++factory_.runs_;
  run_ = run;
  ticket_ = ticket;
  const FakeBatch now = batch();
  const FakeModel& model = factory_.model;
  const Bytes true_peak = model.peak(now);
  peak_ = std::min(true_peak, run.grant);
  resident_ = std::max(resident_, peak_ + model.overhead);
  highest_ = std::max(highest_, resident_);
  after(model.time(now), [this] { end_run(); });
}

void FakeProcess::end_run() {
  const FakeBatch now = batch();
  const FakeModel& model = factory_.model;
  if (model.frees_at_once) resident_ = std::min(resident_, model.retained);
  if (const Bytes true_peak = model.peak(now); true_peak > run_.grant) {
    return fail_run(wire::ErrorKind::kOverGrant, run_.grant, true_peak, "the grant was too small");
  }
  switch (model.fault(now)) {
    case FakeFault::kNone: break;
    case FakeFault::kThrow: return fail_run(wire::ErrorKind::kModelError, peak_, {}, "the model threw");
    case FakeFault::kPressure: return fail_run(wire::ErrorKind::kPressure, peak_, {}, "no memory");
    case FakeFault::kSticky: return fail_run(wire::ErrorKind::kStickyDevice, peak_, {}, "device assert");
    case FakeFault::kBadOutput: return fail_run(wire::ErrorKind::kBadOutput, peak_, {}, "rows differ");
    case FakeFault::kDie: return die({ExitReason::Kind::kSignal, SIGSEGV});
    case FakeFault::kMemoryKill: return die({ExitReason::Kind::kMemoryLimit, SIGKILL});
    case FakeFault::kSilent: return;
  }
  const Bytes needed = model.output_bytes ? model.output_bytes(now) : Bytes();
  if (needed > region_bytes_) return say({ticket_, wire::Need{needed}});
  finish_run();
}

void FakeProcess::finish_run() {
  const FakeModel& model = factory_.model;
  wire::Done done;
  done.peak = peak_;
  kept_ += model.keeps_per_row * run_.rows;
  done.live = model.weights + kept_;
  done.resident = told_resident();
  done.execution = model.time(batch());
  if (model.outputs) done.outputs = model.outputs(batch());
  say({std::exchange(ticket_, 0), std::move(done)});
}

void FakeProcess::on_region(const wire::Region& region, std::span<const int> fds) {
  region_bytes_ = Bytes(region.output_bytes);
  if (factory_.model.with_data) {
    output_ = wire::Segment::open(duplicate(fds[0]), region_bytes_, wire::Access::kReadWrite).value();
  }
  after(Duration(1), [this] { finish_run(); });
}

void FakeProcess::answer_stat() {
  const FakeModel& model = factory_.model;
  say({0, wire::Stats{.live = model.weights + kept_,
                      .resident = told_resident(),
                      .libraries = model.base,
                      .heap = model.weights + resident_,
                      .heap_used = model.weights + kept_}});
}

void FakeProcess::fail_run(wire::ErrorKind kind, Bytes peak, Bytes needed, std::string text) {
  say({std::exchange(ticket_, 0), wire::Error{kind, peak, factory_.model.weights, needed, std::move(text)}});
}

Result<std::unique_ptr<supervisor::ProcessPort>> FakeFactory::start(const supervisor::LaunchCommand&,
                                                                    supervisor::ProcessEvents events) {
  ++starts_;
  if (failing_starts > 0) {
    --failing_starts;
    return Status(Code::kUnavailable, "no_program", "the program cannot be executed");
  }
  auto process = std::make_unique<FakeProcess>(*this, static_cast<pid_t>(starts_), std::move(events));
  living_.push_back(process.get());
  return std::unique_ptr<supervisor::ProcessPort>(std::move(process));
}

FakeProcess& FakeFactory::only() const {
  TONNAGE_CHECK(living_.size() == 1, "not exactly one fake process lives");
  return *living_.front();
}

}  // namespace tonnage::testkit
