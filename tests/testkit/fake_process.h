// SPDX-License-Identifier: Apache-2.0
// FakeProcess: a worker without a process, scripted by a FakeModel, on any Loop (in tests a manual one).
//
// Promises: never answers inside send(); the same script and the same calls give the same answers at
// the same times; dies like a real one (on_exit once, last; nothing after kill() but on_exit).
// Memory is arithmetic: anonymous bytes = base + weights + what the largest batch so far has touched
// (or what is retained, where the model frees at once); with a device all but the base lies there.
// Segments are the real ones, mapped only when the script's `outputs` asks for data.
// Threads: the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "supervisor/process.h"
#include "wire/load_doc.h"
#include "wire/segment.h"

namespace tonnage::testkit {

enum class FakeFault {
  kNone,
  kThrow,       // error/model_error
  kPressure,    // error/pressure: the kernel refused inside the grant
  kSticky,      // error/sticky_device
  kBadOutput,   // error/bad_output
  kDie,         // SIGSEGV in the middle
  kMemoryKill,  // killed by the kernel for memory
  kSilent,      // never answers
};

struct FakeBatch {
  const wire::Run& run;
  Bytes input_bytes;
  ByteView input;          // the slot; empty without data
  MutableByteView output;  // the region; empty without data
};

struct FakeModel {
  Duration load_time = milliseconds(100);
  std::optional<wire::Failed> load_failure{};
  bool dies_loading = false;
  wire::LoadedDoc loaded{};

  Bytes base = mib(20);
  Bytes weights = mib(10);
  Bytes overhead = mib(1);     // resident above the tensor peak
  Bytes retained = kib(64);    // resident above ready after trim
  bool frees_at_once = false;  // `retained` already after every batch
  Bytes keeps_per_row{};       // live tensor bytes, for ever
  std::string device{};        // weights and what batches touch lie there; empty: with everything else
  Bytes context = mib(300);    // there, beside them

  std::function<Duration(const FakeBatch&)> time = [](const FakeBatch&) { return milliseconds(5); };
  // True tensor peak; above the grant the batch ends in over_grant.
  std::function<Bytes(const FakeBatch&)> peak = [](const FakeBatch&) { return kib(64); };
  std::function<FakeFault(const FakeBatch&)> fault = [](const FakeBatch&) { return FakeFault::kNone; };
  // Writes outputs and says where they are. See the ready-made ones below.
  std::function<std::vector<wire::TensorLayout>(const FakeBatch&)> outputs;
  // Bytes that the outputs take; above the region the worker asks for a larger one.
  std::function<Bytes(const FakeBatch&)> output_bytes;
  bool with_data = true;  // maps the segments; without, input and output views are empty

  Duration exit_time = milliseconds(1);  // from kill or stop to the exit
};

// The inputs as they came.
std::vector<wire::TensorLayout> echo_outputs(const FakeBatch& batch);
// FP32 [rows, 1]: the sum of a row's elements in the first input (INT64).
std::vector<wire::TensorLayout> row_sums(const FakeBatch& batch);
// FP32 [rows, columns] of whatever the region holds; needs no data.
std::function<std::vector<wire::TensorLayout>(const FakeBatch&)> blank_outputs(std::int64_t columns);

class FakeFactory;

class FakeProcess final : public supervisor::ProcessPort {
 public:
  FakeProcess(FakeFactory& factory, pid_t pid, supervisor::ProcessEvents events);
  ~FakeProcess() override;

  Status send(const wire::Message& message, std::span<const int> fds) override;
  void kill() override;
  pid_t pid() const override { return pid_; }
  Result<memory::ProcessReading> reading() const override;
  Bytes device_use() const;  // with its context
  Status reset_resident_peak() override {
    highest_ = resident_;
    return Status::ok();
  }
  Status limit_data(Bytes limit) override;

  // By hand: what the script would not do.
  void say(wire::Message message, std::vector<UniqueFd> fds = {});  // at once, as if read now
  void say_nonsense();
  void die(supervisor::ExitReason reason);  // at once
  void refuse_messages() { refuses_messages_ = true; }
  void set_resident(Bytes above_ready) { resident_ = above_ready; }

  std::optional<Bytes> data_limit() const { return data_limit_; }
  std::uint64_t ticket() const { return ticket_; }
  const std::vector<std::string>& received() const { return received_; }  // names of messages, in order

 private:
  // What it says as resident: of its device, where it has one.
  Bytes told_resident() const;
  void on_load(const wire::Load& load, std::span<const int> fds);
  void answer_load();
  void on_run(std::uint64_t ticket, const wire::Run& run);
  void end_run();
  void finish_run();
  void answer_stat();
  void on_region(const wire::Region& region, std::span<const int> fds);
  void fail_run(wire::ErrorKind kind, Bytes peak, Bytes needed, std::string text);
  void exit_later(supervisor::ExitReason reason);
  FakeBatch batch();
  void after(Duration delay, UniqueFunction<void()> fn);

  FakeFactory& factory_;
  pid_t pid_;
  supervisor::ProcessEvents events_;
  std::optional<wire::Segment> slots_[wire::kInputSlots];
  std::optional<wire::Segment> output_;
  Bytes region_bytes_;
  wire::Run run_;
  std::uint64_t ticket_ = 0;
  Bytes peak_;
  Bytes resident_;  // above ready
  Bytes highest_;
  Bytes kept_;
  std::optional<Bytes> data_limit_;
  bool is_exiting_ = false;
  bool refuses_messages_ = false;
  std::vector<std::string> received_;
  Loop::Timer work_;
  Loop::Timer stats_;
  Loop::Timer exit_;
};

// Starts FakeProcesses. The model may be changed at any time; it counts from the next question on.
class FakeFactory final : public supervisor::ProcessFactory {
 public:
  explicit FakeFactory(Loop& loop, FakeModel fake_model = {}) : model(std::move(fake_model)), loop_(loop) {}
  Result<std::unique_ptr<supervisor::ProcessPort>> start(const supervisor::LaunchCommand& command,
                                                         supervisor::ProcessEvents events) override;

  FakeModel model;
  bool keeps_names = true;  // FakeProcess::received(); off for long simulations
  int failing_starts = 0;   // how many of the next starts fail

  // The living processes, oldest first.
  const std::vector<FakeProcess*>& living() const { return living_; }
  FakeProcess& only() const;
  std::uint64_t starts() const { return starts_; }
  std::uint64_t runs() const { return runs_; }
  Loop& loop() { return loop_; }

 private:
  friend class FakeProcess;
  Loop& loop_;
  std::vector<FakeProcess*> living_;
  std::uint64_t starts_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace tonnage::testkit
