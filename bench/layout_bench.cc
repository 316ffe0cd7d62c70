// SPDX-License-Identifier: Apache-2.0
// tonnage-bench-layout: threads and OpenMP waiting of the torch worker, quiet and beside one busy foreign
// thread (the thief). Chooses the defaults of the supervisor's environment: a layout may lose at most
// three times under the thief; among those the fastest quiet one wins.
//
// Layouts run interleaved, in rounds; a quiet round in which others used more than 5 % of the CPUs is void
// and is repeated, at most as often again. The last line is one JSON object.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/json_text.h"
#include "kit/blocking_front.h"
#include "tensor/buffer.h"

namespace tonnage::bench {
namespace {

constexpr std::uint32_t kRows = 4;
constexpr std::uint32_t kLength = 64;
constexpr int kRounds = 5;
constexpr int kBatches = 20;  // per layout and round
constexpr double kForeignLimit = 0.05;

using Clock = std::chrono::steady_clock;
using Environment = std::vector<std::pair<std::string, std::string>>;

struct Layout {
  std::string name;
  std::uint32_t threads;
  Environment environment;
  std::vector<double> quiet;   // milliseconds
  std::vector<double> beside;  // … beside the thief
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// CPU seconds of the whole machine that were not idle, and of one process.
double busy_seconds() {
  std::ifstream in("/proc/stat");
  std::string word;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal
  in >> word;
  for (double& tick : ticks) in >> tick;
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return busy / static_cast<double>(::sysconf(_SC_CLK_TCK));
}
double process_seconds(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(in, text);
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skip;
  for (int i = 0; i < 11; ++i) rest >> skip;
  double user = 0;
  double system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

class Thief {
 public:
  Thief()
      : thread_([this] {
          while (!stop_.load(std::memory_order_relaxed)) spins_.fetch_add(1, std::memory_order_relaxed);
        }) {}
  ~Thief() { stop_ = true; }
  Thief(const Thief&) = delete;
  Thief& operator=(const Thief&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> spins_{0};
  std::jthread thread_;
};

wire::Run fill(kit::BlockingFront& front) {
  const std::array<std::int64_t, 2> dims{kRows, kLength};
  const auto shape = tensor::Shape::make(dims).value();
  constexpr std::size_t kBytes = std::size_t{kRows} * kLength * sizeof(std::int64_t);
  const auto slot = as_elements<std::int64_t>(front.slot());
  for (std::size_t i = 0; i < kBytes / sizeof(std::int64_t); ++i) {
    slot[i] = static_cast<std::int64_t>(i * 37 % 30522);
    slot[kBytes / sizeof(std::int64_t) + i] = 1;
  }
  return {.slot = 0,
          .rows = kRows,
          .length = kLength,
          .grant = gib(1),
          .inputs = {{tensor::DataType::kInt64, shape, 0, kBytes},
                     {tensor::DataType::kInt64, shape, kBytes, kBytes}}};
}

Result<double> median_millis(kit::BlockingFront& front, const wire::Run& run) {
  std::vector<double> times;
  for (int i = 0; i < kBatches; ++i) {
    const auto began = Clock::now();
    TONNAGE_ASSIGN(const auto outcome, front.run(run));
    if (const auto* error = std::get_if<wire::Error>(&outcome)) return internal("run_failed", error->text);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  return median(times);
}

// Nothing: the round was void, others used the machine.
Result<std::optional<double>> quiet_round(kit::BlockingFront& front, const wire::Run& run) {
  const auto began = Clock::now();
  const double busy = busy_seconds() - process_seconds(::getpid()) - process_seconds(front.pid());
  TONNAGE_ASSIGN(const double millis, median_millis(front, run));
  const double foreign = busy_seconds() - process_seconds(::getpid()) - process_seconds(front.pid()) - busy;
  const double elapsed = std::chrono::duration<double>(Clock::now() - began).count();
  const double share = foreign / (elapsed * std::max(1U, std::thread::hardware_concurrency()));
  if (share <= kForeignLimit) return std::optional(millis);
  fmt::print(stderr, "  void: others used {:.0f} % of the CPUs\n", 100 * share);
  return std::optional<double>();
}

Status measure(std::vector<Layout>& layouts, const std::string& program, const wire::LoadDoc& doc) {
  for (int round = 0, tries = 0; round < kRounds && tries < 2 * kRounds; ++tries) {
    bool is_void = false;
    for (Layout& layout : layouts) {
      wire::LoadDoc own = doc;
      own.threads = layout.threads;
      TONNAGE_ASSIGN(auto front, kit::BlockingFront::start(
                                     {.program = program, .environment = layout.environment, .doc = own}));
      const wire::Run run = fill(front);
      TONNAGE_TRY(median_millis(front, run).status());  // warm-up
      TONNAGE_ASSIGN(const auto quiet, quiet_round(front, run));
      is_void = is_void || !quiet;
      if (!quiet) continue;
      layout.quiet.push_back(*quiet);
      const Thief thief;
      TONNAGE_ASSIGN(const double beside, median_millis(front, run));
      layout.beside.push_back(beside);
    }
    if (!is_void) ++round;
  }
  return Status::ok();
}

std::string json_of(const std::vector<Layout>& layouts) {
  std::string out =
      fmt::format("{{\"name\":\"layout\",\"rows\":{},\"length\":{},\"layouts\":{{", kRows, kLength);
  const Layout* chosen = nullptr;
  std::string separator;
  for (const Layout& layout : layouts) {
    const double quiet = median(layout.quiet);
    const double beside = median(layout.beside);
    const double loss = quiet > 0 ? beside / quiet : 0;
    out += fmt::format("{}{}:{{\"quiet_ms\":{:.2f},\"thief_ms\":{:.2f},\"loss\":{:.2f},\"rounds\":{}}}",
                       separator, json_string(layout.name), quiet, beside, loss, layout.quiet.size());
    separator = ",";
    const bool is_allowed = quiet > 0 && loss <= 3;
    if (is_allowed && (chosen == nullptr || quiet < median(chosen->quiet))) chosen = &layout;
  }
  return out + fmt::format("}},\"chosen\":{}}}", chosen == nullptr ? "null" : json_string(chosen->name));
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  using namespace tonnage;
  if (argc > 2) {
    fmt::print(stderr, "usage: tonnage-bench-layout [MODELS]   (default build/models)\n");
    return 64;
  }
  const std::string models = argc == 2 ? argv[1] : "build/models";
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  wire::LoadDoc doc{
      .model = "encoder-1024", .version = "1", .route = "trace", .path = models + "/encoder-1024/1/model.pt"};
  std::vector<bench::Layout> layouts{
      {"2 threads, default waiting", 2, {}, {}, {}},
      {"2 threads, passive", 2, {{"OMP_WAIT_POLICY", "passive"}}, {}, {}},
      {"2 threads, spin count 0", 2, {{"GOMP_SPINCOUNT", "0"}}, {}, {}},
      {"2 threads, spin count 10000", 2, {{"GOMP_SPINCOUNT", "10000"}}, {}, {}},
      {"1 thread", 1, {{"OMP_WAIT_POLICY", "passive"}}, {}, {}},
  };
  const Status status = bench::measure(layouts, bin + "/tonnage-worker-torch", doc);
  if (!status.is_ok()) {
    fmt::print(stderr, "layout: {}\n", status.to_string());
    return 1;
  }
  fmt::print("{}\n", bench::json_of(layouts));
  return 0;
}
