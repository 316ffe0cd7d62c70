// SPDX-License-Identifier: Apache-2.0
// What the torch worker must show on a GPU, through the wire and without the server; acceptance.sh builds and
// runs it. usage: gpu_acceptance WORKER MODEL.pt DEVICE CAP_MIB. Prints one JSON line; exit status 1 where a
// promise does not hold. DEVICE cpu proves this program apart from a device.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/device_name.h"
#include "base/json_text.h"
#include "base/random.h"
#include "base/spans.h"
#include "kit/blocking_front.h"
#include "memory/device_ledger.h"
#include "wire/messages.h"

namespace tonnage::acceptance {
namespace {

using kit::BlockingFront;

constexpr std::int64_t kVocabulary = 30522;
constexpr std::uint32_t kLongest = 1024;
constexpr std::uint32_t kMostRows = 1024;
constexpr Bytes kSlot = mib(32);

struct Given {
  std::string worker;
  std::string model;
  std::string device;
  Bytes cap;
  bool on_device() const { return device != "cpu"; }
};

// The line, and whether all of it is as promised.
class Report {
 public:
  void add(std::string_view key, std::string_view json) {
    line_ += fmt::format("{}\"{}\":{}", line_.empty() ? "" : ",", key, json);
  }
  void require(bool holds, std::string_view what) {
    if (holds) return;
    broken_ += fmt::format("{}{}", broken_.empty() ? "" : ",", json_string(what));
    (void)std::fprintf(stderr, "NOT AS PROMISED: %.*s\n", static_cast<int>(what.size()), what.data());
  }
  int finish() {
    std::printf("{%s,\"not_as_promised\":[%s],\"passed\":%s}\n", line_.c_str(), broken_.c_str(),
                broken_.empty() ? "true" : "false");
    return broken_.empty() ? 0 : 1;
  }

 private:
  std::string line_;
  std::string broken_;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Without `ranges` nobody proves the ids before the model sees them.
Result<BlockingFront> start(const Given& given, const std::string& precision, bool ranges = true) {
  kit::BlockingFrontOptions options{.program = given.worker, .slot = kSlot};
  options.environment = {{"OMP_WAIT_POLICY", "passive"}};
  // Where a container keeps its driver, and how an allocator is told to be another one.
  for (const char* name : {"LD_LIBRARY_PATH", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (const char* value = std::getenv(name)) options.environment.emplace_back(name, value);
  }
  options.doc = {.model = "encoder", .version = "1", .route = "script", .path = given.model, .threads = 1};
  options.doc.inputs = {{"ids", tensor::DataType::kInt64, {-1, -1}},
                        {"mask", tensor::DataType::kInt64, {-1, -1}}};
  if (ranges) {
    options.doc.inputs[0].range = wire::ValueRange{0, kVocabulary - 1};
    options.doc.inputs[1].range = wire::ValueRange{0, 1};
  }
  options.doc.outputs = {{"sentence", tensor::DataType::kFp32, {-1, 384}}};
  options.doc.options = {{"precision", precision}, {"device", given.device}, {"max_length", "128"}};
  return BlockingFront::start(options);
}

wire::Run ids_run(BlockingFront& front, std::uint32_t rows, std::uint32_t length, Bytes grant,
                  Random& random) {
  const std::size_t count = std::size_t{rows} * length;
  const std::size_t second = (count + 7) / 8 * 8;
  const auto slot = as_elements<std::int64_t>(front.slot());
  for (std::size_t i = 0; i < count; ++i) {
    slot[i] = static_cast<std::int64_t>(random.unit() * (kVocabulary - 1));
    slot[second + i] = 1;
  }
  const std::array<std::int64_t, 2> dims{rows, length};
  const auto shape = tensor::Shape::make(dims).value();
  return {.slot = 0,
          .rows = rows,
          .length = length,
          .grant = grant,
          .inputs = {{tensor::DataType::kInt64, shape, 0, count * 8},
                     {tensor::DataType::kInt64, shape, second * 8, count * 8}}};
}

// What came of it, in words; empty: done.
std::string trouble(const Result<kit::FrontOutcome>& outcome) {
  if (!outcome.is_ok()) return outcome.status().to_string();
  const auto* error = std::get_if<wire::Error>(&*outcome);
  return error == nullptr ? "" : fmt::format("error {}: {}", static_cast<int>(error->kind), error->text);
}

// Batches grow, each padded to its longest row, until one does not fit under the cap: it is refused with the
// bytes that it needs, and the next ordinary one runs.
void replay_incident(const Given& given, BlockingFront& front, Random& random, Report& report) {
  const Bytes grant = saturating_sub(given.cap, front.loaded().live);
  Bytes peak;
  for (std::uint32_t rows = 1; rows <= kMostRows; rows *= 2) {
    const auto outcome = front.run(ids_run(front, rows, kLongest, grant, random));
    if (outcome.is_ok() && std::holds_alternative<wire::Done>(*outcome)) {
      peak = std::get<wire::Done>(*outcome).peak;
      continue;
    }
    const auto* error = outcome.is_ok() ? std::get_if<wire::Error>(&*outcome) : nullptr;
    const bool is_refusal = error != nullptr && error->kind == wire::ErrorKind::kOverGrant;
    report.require(is_refusal, "a batch above the cap is refused as over_grant, not: " + trouble(outcome));
    report.require(is_refusal && error->needed > grant, "a refusal names more bytes than there were");
    const std::string after = trouble(front.run(ids_run(front, 4, 128, grant, random)));
    report.require(after.empty(), "the batch after the refused one runs, not: " + after);
    report.add("incident", fmt::format("{{\"cap_bytes\":{},\"largest_run_bytes\":{},\"refused_rows\":{},"
                                       "\"needed_bytes\":{},\"next_ran\":{}}}",
                                       given.cap.count(), peak.count(), rows,
                                       error == nullptr ? 0 : error->needed.count(), after.empty()));
    return;
  }
  report.require(false, fmt::format("{} rows of {} did not reach the cap", kMostRows, kLongest));
}

// Shapes at random, each twice: with room to show its peak, then with that as its grant.
void check_grants(const Given& given, BlockingFront& front, Random& random, Report& report) {
  const std::uint32_t batches = given.on_device() ? 200 : 12;
  const std::uint32_t most_rows = given.on_device() ? 32 : 4;
  Bytes worst;
  std::uint32_t refused = 0;
  for (std::uint32_t i = 0; i < batches; ++i) {
    const auto rows = 1 + static_cast<std::uint32_t>(random.unit() * (most_rows - 1));
    const std::uint32_t length = 32 * (1 + static_cast<std::uint32_t>(random.unit() * 7));
    const auto first = front.run(ids_run(front, rows, length, given.cap, random));
    if (!trouble(first).empty())
      return report.require(false, "a batch with room runs, not: " + trouble(first));
    const Bytes grant = round_up(scale(std::get<wire::Done>(*first).peak, 1.02), kib(64));
    const auto second = front.run(ids_run(front, rows, length, grant, random));
    refused += trouble(second).empty() ? 0U : 1U;
    const auto* done = second.is_ok() ? std::get_if<wire::Done>(&*second) : nullptr;
    if (done == nullptr) continue;
    // On a device what is told as resident is what its allocator has reserved.
    const Bytes allowed = done->live + grant + wire::kSegmentSlack;
    const Bytes held = given.on_device() ? done->resident : done->live + done->peak;
    worst = std::max(worst, saturating_sub(held, allowed));
  }
  report.require(worst == Bytes(), "reserved bytes stay below live + grant + one segment");
  report.require(refused * 50 <= batches, "a grant of what the shape took before is enough");
  report.add("grants", fmt::format("{{\"batches\":{},\"refused\":{},\"worst_excess_bytes\":{}}}", batches,
                                   refused, worst.count()));
}

void check_precision(const Given& given, const std::string& precision, Random& random, Report& report) {
  auto front = start(given, precision);
  report.require(front.is_ok(), precision + " passes the gate, not: " + front.status().to_string());
  if (!front.is_ok()) return;
  const std::uint32_t rows = given.on_device() ? 64 : 4;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto outcome = front->run(ids_run(*front, rows, 256, given.cap, random));
    if (!trouble(outcome).empty())
      return report.require(false, precision + " runs, not: " + trouble(outcome));
    best = std::min(best, to_millis(std::get<wire::Done>(*outcome).execution));
  }
  const auto& facts = front->loaded_doc().facts;
  const auto fact = [&](const char* key) {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string("null") : found->second;
  };
  report.add(precision, fmt::format("{{\"parity_min_cosine\":{},\"weight_bytes\":{},\"batch_ms\":{:.3f}}}",
                                    fact("parity_min_cosine"), front->loaded().weights.count(), best));
}

// An id outside the vocabulary: an assert in a kernel breaks the device for this process, and is no matter of
// memory. On the host it is one failed batch.
void check_sticky(const Given& given, Random& random, Report& report) {
  auto front = start(given, "fp32", false);
  if (!front.is_ok()) return report.require(false, "a worker starts: " + front.status().to_string());
  const wire::Run run = ids_run(*front, 2, 32, given.cap, random);
  as_elements<std::int64_t>(front->slot())[3] = kVocabulary + 7;
  const auto outcome = front->run(run);
  const auto* error = outcome.is_ok() ? std::get_if<wire::Error>(&*outcome) : nullptr;
  const auto awaited = given.on_device() ? wire::ErrorKind::kStickyDevice : wire::ErrorKind::kModelError;
  const bool is_as_awaited = error != nullptr && error->kind == awaited;
  report.require(is_as_awaited, fmt::format("an id outside the vocabulary is error {}, not: {}",
                                            static_cast<int>(awaited), trouble(outcome)));
  report.add("bad_id_is_error", error == nullptr ? "null" : fmt::format("{}", static_cast<int>(error->kind)));
}

void check_kill(const Given& given, BlockingFront front, Random& random, Report& report,
                const memory::DevicePort* driver) {
  const auto before =
      driver == nullptr ? Result<memory::DeviceReading>(Status(Code::kNotFound, "none", "")) : driver->read();
  ::kill(front.pid(), SIGKILL);
  const auto outcome = front.run(ids_run(front, 1, 32, given.cap, random));
  report.require(!outcome.is_ok(), "a killed worker answers nothing");
  { const BlockingFront gone = std::move(front); }
  Bytes came_back;
  if (before.is_ok()) {
    if (const auto after = driver->read(); after.is_ok())
      came_back = saturating_sub(before->used, after->used);
    report.require(came_back > Bytes(), "the memory of a killed worker comes back to the device");
  }
  const double began = seconds_now();
  auto again = start(given, "fp32");
  const double seconds = seconds_now() - began;
  const std::string why = again.is_ok() ? trouble(again->run(ids_run(*again, 1, 32, given.cap, random)))
                                        : again.status().to_string();
  report.require(why.empty(), "a worker starts and runs after another was killed, not: " + why);
  report.add("kill",
             fmt::format("{{\"came_back_bytes\":{},\"start_s\":{:.2f}}}", came_back.count(), seconds));
}

// What the process holds beside its allocator: by the driver's word for the process, else (it names none in
// many containers) by what the whole device lost while it started.
void report_context(const BlockingFront& front, const memory::DevicePort& driver, Bytes used_before,
                    Report& report) {
  const auto told = front.loaded_doc().facts.find("reserved_bytes");
  const Bytes reserved(
      told == front.loaded_doc().facts.end() ? 0 : std::strtoull(told->second.c_str(), nullptr, 10));
  const auto process = driver.process_use(front.pid());
  const auto now = driver.read();
  const Bytes use = process.is_ok() ? *process
                    : now.is_ok()   ? saturating_sub(now->used, used_before)
                                    : Bytes();
  const Bytes context = saturating_sub(use, reserved);
  report.require(context > Bytes() && context < gib(2), "a context of some hundred MiB is seen");
  report.add("context", fmt::format("{{\"bytes\":{},\"reserved_bytes\":{},\"from\":\"{}\"}}", context.count(),
                                    reserved.count(), process.is_ok() ? "process" : "device"));
}

int run(const Given& given) {
  Report report;
  Random random(1);
  report.add("device", json_string(given.device));
  std::unique_ptr<memory::DevicePort> driver;
  Bytes used_before;
  if (const auto index = cuda_index(given.device)) {
    auto opened = memory::Devices::open_nvml(*index);
    report.require(opened.is_ok(), "the driver answers: " + opened.status().to_string());
    if (opened.is_ok()) driver = std::move(opened).value();
    if (driver) {
      if (const auto reading = driver->read(); reading.is_ok()) {
        used_before = reading->used;
        report.add("device_total_bytes", fmt::format("{}", reading->total.count()));
      }
    }
  }
  const double began = seconds_now();
  auto front = start(given, "fp32");
  report.add("ready_s", fmt::format("{:.2f}", seconds_now() - began));
  report.require(front.is_ok(), "the worker loads the model: " + front.status().to_string());
  if (!front.is_ok()) return report.finish();
  report.add("runtime", json_string(front->loaded_doc().runtime));
  report.add("weight_bytes", fmt::format("{}", front->loaded().weights.count()));
  if (driver) report_context(*front, *driver, used_before, report);
  replay_incident(given, *front, random, report);
  report.require(front->trim().is_ok(), "the worker trims");
  check_grants(given, *front, random, report);
  check_kill(given, std::move(*front), random, report, driver.get());
  for (const char* precision : {"fp32", "fp16", "bf16"}) check_precision(given, precision, random, report);
  check_sticky(given, random, report);
  return report.finish();
}

}  // namespace
}  // namespace tonnage::acceptance

int main(int argc, char** argv) {
  if (argc != 5) {
    (void)std::fprintf(stderr, "usage: gpu_acceptance WORKER MODEL.pt cpu|cuda:N CAP_MIB\n");
    return 2;
  }
  return tonnage::acceptance::run(
      {argv[1], argv[2], argv[3], tonnage::mib(std::strtoull(argv[4], nullptr, 10))});
}
