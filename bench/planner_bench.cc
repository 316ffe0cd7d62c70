// SPDX-License-Identifier: Apache-2.0
// One whole plan call: show the windows of 4 lanes (4,096 rows pending), plan each, let the arbiter
// choose. Between calls, outside the measured time, the chosen batch leaves and as many rows arrive.
// The last line is one JSON object; `p99_us` is the median of five rounds by the wall clock, `cpu_p99_us`
// the same by the thread's CPU time, which leaves out what other programs took meanwhile.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "lane/lane.h"
#include "planner/arbiter.h"
#include "planner/plan.h"
#include "testkit/counting_new.h"
#include "testkit/traffic.h"

namespace tonnage {
namespace {

constexpr std::size_t kLanes = 4;
constexpr std::uint32_t kPending = 4096;
constexpr std::size_t kWindow = 256;
constexpr std::size_t kRounds = 5;
constexpr std::size_t kMostVoid = 5;      // rounds per scenario; then the noise is counted and told
constexpr double kForeignAllowed = 0.05;  // share of the machine's CPU that others took

// A MiniLM-class encoder at 200 GFLOP/s; `fixed_tokens` is what a call costs besides its tokens.
cost::CostTable encoder_table(double fixed_tokens) {
  cost::CostTable table(64, 32, 1024);
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    const double length = table.length_of(column);
    for (std::uint32_t rows = 1; rows <= table.max_rows(); ++rows) {
      const double tokens = rows * length;
      const double flop = fixed_tokens * 21'233'664 + tokens * (21'233'664 + 9'216 * length);
      table.set(rows, column, Bytes(static_cast<std::uint64_t>(tokens) * 13'832), from_seconds(flop / 200e9));
    }
  }
  return table;
}

struct Scenario {
  std::string_view name;
  double fixed_tokens = 30;
  Duration deadline = seconds(3600);  // of every row, from its arrival
  Duration max_batch_time = milliseconds(250);
  std::size_t calls = 10000;
};

class Device {
 public:
  Device(const Scenario& scenario, std::uint64_t seed)
      : scenario_(scenario),
        cost_(encoder_table(scenario.fixed_tokens)),
        traffic_(seed, testkit::kLongTailedMix, 100, now_) {
    limits_.cost = &cost_;
    limits_.free = gib(4);
    limits_.max_batch_time = scenario.max_batch_time;
    limits_.max_age = 2 * scenario.max_batch_time;
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes_.emplace_back(lane::LaneLimits{.max_rows = kPending, .max_work = seconds(100'000)});
      seen_[i].resize(kWindow);
      refill(i, kPending / kLanes);
    }
  }

  // The measured part.
  std::optional<std::size_t> plan() {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const auto window = lanes_[i].window(kWindow);
      for (std::size_t row = 0; row < window.size(); ++row) {
        seen_[i][row] = {.length = window[row].length,
                         .units = window[row].units,
                         .enqueued = window[row].enqueued,
                         .deadline = window[row].deadline};
      }
      plans_[i] = plan_lane({.rows = std::span(seen_[i]).first(window.size())}, limits_, now_, scratch_[i]);
      contenders_[i] = {.lane = static_cast<std::uint32_t>(i),
                        .time = plans_[i].time,
                        .must_start_by = plans_[i].must_start_by,
                        .tokens = 1};
    }
    return arbiter_.choose(contenders_, 1);
  }

  void carry_out(std::size_t chosen) {
    arbiter_.charge(static_cast<std::uint32_t>(chosen), plans_[chosen].time);
    now_ += plans_[chosen].time;
    for (std::size_t i = 0; i < kLanes; ++i) {
      if (i == chosen) lanes_[i].take(plans_[i].batch);
      lanes_[i].take(plans_[i].drops);
      refill(i, kPending / kLanes - lanes_[i].rows());
    }
  }

 private:
  void refill(std::size_t lane, std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
      const lane::QueuedRow row{.request = {.index = next_++, .generation = 1},
                                .length = traffic_.length(),
                                .enqueued = now_,
                                .deadline = now_ + scenario_.deadline};
      if (!lanes_[lane].push(std::span(&row, 1)).is_ok()) std::abort();
    }
  }

  Scenario scenario_;
  cost::CostTable cost_;
  TimePoint now_{seconds(1000)};
  testkit::Traffic traffic_;
  planner::PlanLimits limits_;
  std::vector<lane::Lane> lanes_;
  std::array<std::vector<planner::PlannerRow>, kLanes> seen_;
  std::array<planner::PlanScratch, kLanes> scratch_;
  std::array<planner::Plan, kLanes> plans_;
  std::array<planner::Contender, kLanes> contenders_;
  planner::Arbiter arbiter_;
  std::uint32_t next_ = 0;
};

double seconds_of(clockid_t clock) {
  timespec spent{};
  clock_gettime(clock, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

// What other programs took of the machine since it was made.
class ForeignCpu {
 public:
  double share() const {
    const auto [busy, total] = read();
    const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    const double own = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - own_) * ticks;
    return total > total_ ? std::max(busy - busy_ - own, 0.0) / (total - total_) : 0;
  }

 private:
  static std::pair<double, double> read() {
    std::ifstream stat("/proc/stat");
    std::string label;
    stat >> label;
    double busy = 0;
    double total = 0;
    for (int field = 0; field < 8; ++field) {  // user nice system idle iowait irq softirq steal
      double ticks = 0;
      stat >> ticks;
      total += ticks;
      if (field != 3 && field != 4) busy += ticks;
    }
    return {busy, total};
  }
  double own_ = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  double busy_ = read().first;
  double total_ = read().second;
};

struct Figures {
  double p50_us = 0;
  double p99_us = 0;
  double cpu_p99_us = 0;
  std::uint64_t allocations = 0;
};

double quantile(std::vector<double>& values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * share);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double thread_cpu_us() { return seconds_of(CLOCK_THREAD_CPUTIME_ID) * 1e6; }

Figures run_round(const Scenario& scenario, std::uint64_t seed) {
  using Clock = std::chrono::steady_clock;
  Device device(scenario, seed);
  Figures figures;
  std::vector<double> micros;
  std::vector<double> cpu_micros;
  micros.reserve(scenario.calls);
  cpu_micros.reserve(scenario.calls);
  for (std::size_t call = 0; call < scenario.calls + 50; ++call) {
    const std::uint64_t before = testkit::allocations_so_far.load();
    const double cpu_start = thread_cpu_us();
    const auto start = Clock::now();
    const auto chosen = device.plan();
    const double took = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    const double cpu_took = thread_cpu_us() - cpu_start;
    if (call >= 50) {  // the first calls size the buffers
      figures.allocations += testkit::allocations_so_far.load() - before;
      micros.push_back(took);
      cpu_micros.push_back(cpu_took);
    }
    if (!chosen) std::abort();
    device.carry_out(*chosen);
  }
  figures.p50_us = quantile(micros, 0.50);
  figures.p99_us = quantile(micros, 0.99);
  figures.cpu_p99_us = quantile(cpu_micros, 0.99);
  return figures;
}

// Medians of the rounds. A round in which others were busy is void and repeated.
Figures run_scenario(const Scenario& scenario, std::size_t& void_rounds, bool& is_noisy) {
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> cpu_p99;
  Figures sum;
  std::size_t voids = 0;
  while (p50.size() < kRounds) {
    const ForeignCpu foreign;
    const Figures figures = run_round(scenario, p50.size() + 1);
    const double share = foreign.share();
    const bool is_void = share > kForeignAllowed && voids < kMostVoid;
    fmt::print(
        "{:<10} round {}: p50 {:6.1f} us  p99 {:6.1f} us  cpu p99 {:6.1f} us  allocations {}  foreign cpu "
        "{:.0f} %{}\n",
        scenario.name, p50.size() + 1, figures.p50_us, figures.p99_us, figures.cpu_p99_us,
        figures.allocations, share * 100, is_void ? "  void" : "");
    std::fflush(stdout);
    sum.allocations += figures.allocations;
    voids += is_void ? 1 : 0;
    if (is_void) continue;
    is_noisy = is_noisy || share > kForeignAllowed;
    p50.push_back(figures.p50_us);
    p99.push_back(figures.p99_us);
    cpu_p99.push_back(figures.cpu_p99_us);
  }
  void_rounds += voids;
  sum.p50_us = quantile(p50, 0.5);
  sum.p99_us = quantile(p99, 0.5);
  sum.cpu_p99_us = quantile(cpu_p99, 0.5);
  return sum;
}

int run() {
  // `flat`: a device with a large fixed cost, where batches reach 64 rows. `deadlines`: the whole
  // backlog is about to miss its deadlines, so every group is weighed against every row.
  std::size_t voids = 0;
  bool is_noisy = false;
  const Figures mix = run_scenario({.name = "mix"}, voids, is_noisy);
  const Figures flat =
      run_scenario({.name = "flat", .fixed_tokens = 2000, .max_batch_time = seconds(2)}, voids, is_noisy);
  const Figures pressed =
      run_scenario({.name = "deadlines", .deadline = milliseconds(2500), .calls = 1000}, voids, is_noisy);
  fmt::print(
      "{{\"name\":\"planner\",\"p50_us\":{:.1f},\"p99_us\":{:.1f},\"allocations\":{},\"cpu_p99_us\":{:.1f},"
      "\"flat_p99_us\":{:.1f},\"flat_cpu_p99_us\":{:.1f},\"deadlines_p50_us\":{:.1f},\"deadlines_p99_us\":{:."
      "1f},"
      "\"deadlines_cpu_p99_us\":{:.1f},\"lanes\":{},\"pending\":{},\"rounds\":{},\"void_rounds\":{},"
      "\"noisy\":{}}}\n",
      mix.p50_us, mix.p99_us, mix.allocations + flat.allocations + pressed.allocations, mix.cpu_p99_us,
      flat.p99_us, flat.cpu_p99_us, pressed.p50_us, pressed.p99_us, pressed.cpu_p99_us, kLanes, kPending,
      kRounds, voids, is_noisy);
  return 0;
}

}  // namespace
}  // namespace tonnage

int main() { return tonnage::run(); }
