// SPDX-License-Identifier: Apache-2.0
// tonnage-bench-caches: what the two caches of oneDNN give in speed and take in memory.
//
// For each precision, capacity and number of shapes in use: a worker runs every shape once, then requests of
// these shapes in random order; reported are CPU time per token and resident bytes above those at ready.
// CPU time, not wall time: a neighbour then disturbs less. The last line is one JSON object.
#include <fmt/format.h>

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "bench/predict/subject.h"
#include "testkit/plateau.h"

namespace tonnage::bench {
namespace {

constexpr std::uint64_t kTokens = 100'000;  // per case, beside the first passes
constexpr std::uint32_t kMostTokens = 512;  // of a batch: where a compiled primitive matters most

struct Case {
  std::string precision;
  int capacity;  // entries of each cache
  std::uint32_t shapes;
};

// User and system time of a process and its threads.
double cpu_seconds(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(0, text.rfind(')') + 2);
  double user = 0;
  double system = 0;
  std::string field;
  std::size_t at = 0;
  for (int i = 3; i <= 15; ++i) {  // proc(5): 14 utime, 15 stime
    const std::size_t end = text.find(' ', at);
    field = text.substr(at, end - at);
    at = end + 1;
    if (i == 14) user = std::stod(field);
    if (i == 15) system = std::stod(field);
  }
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Result<std::string> run(const std::string& bin, const std::string& model, const Case& c) {
  TONNAGE_ASSIGN(const Subject subject, exported_model(bin, model, "", c.precision));
  const std::string capacity = std::to_string(c.capacity);
  TONNAGE_ASSIGN(auto front,
                 kit::BlockingFront::start({.program = subject.program,
                                            .environment = {{"OMP_WAIT_POLICY", "passive"},
                                                            {"ONEDNN_PRIMITIVE_CACHE_CAPACITY", capacity},
                                                            {"LRU_CACHE_CAPACITY", capacity}},
                                            .doc = subject.doc}));
  TONNAGE_ASSIGN(const wire::Stats ready, front.stat());
  Random random(1);
  std::vector<cost::Shape> shapes;
  for (std::set<std::pair<std::uint32_t, std::uint32_t>> seen; shapes.size() < c.shapes;) {
    // As served: lengths are padded to multiples of 32; many shapes: any length.
    const std::uint32_t step = c.shapes <= 64 ? 32 : 1;
    const auto length = static_cast<std::uint32_t>(random.between(1, 512 / step)) * step;
    const auto rows = static_cast<std::uint32_t>(random.between(1, std::max(1U, kMostTokens / length)));
    if (seen.insert({rows, length}).second) shapes.push_back({rows, length});
  }
  const auto run_one = [&](cost::Shape shape) -> Status {
    TONNAGE_ASSIGN(const auto outcome, front.run(fill(front, subject, shape, random, gib(2))));
    const auto* error = std::get_if<wire::Error>(&outcome);
    return error == nullptr ? Status::ok() : internal("run_failed", error->text);
  };
  for (const cost::Shape shape : shapes) TONNAGE_TRY(run_one(shape));
  std::vector<double> resident;
  const double before = cpu_seconds(front.pid());
  std::uint64_t tokens = 0;
  while (tokens < kTokens) {
    const cost::Shape shape = shapes[random.below(shapes.size())];
    TONNAGE_TRY(run_one(shape));
    tokens += std::uint64_t{shape.rows} * shape.length;
    TONNAGE_ASSIGN(const wire::Stats stats, front.stat());
    resident.push_back(static_cast<double>(stats.resident.count()));
  }
  const double cpu = cpu_seconds(front.pid()) - before;
  TONNAGE_ASSIGN(const wire::Trimmed trimmed, front.trim());
  const std::string keys = fmt::format(
      "{{\"precision\":\"{}\",\"capacity\":{},\"shapes\":{},\"cpu_us_per_token\":{:.2f},\"resident_growth\":{"
      "},"
      "\"after_trim\":{},\"growth_of_last_third\":{:.4f}}}",
      c.precision, c.capacity, c.shapes, cpu * 1e6 / static_cast<double>(tokens),
      static_cast<std::int64_t>(resident.back()) - static_cast<std::int64_t>(ready.resident.count()),
      static_cast<std::int64_t>(trimmed.resident.count()) - static_cast<std::int64_t>(ready.resident.count()),
      testkit::growth_of_last_third(resident));
  fmt::print(stderr, "  {}\n", keys);
  return keys;
}

Result<std::string> run_all(const std::string& bin, const std::string& model,
                            const std::vector<std::string>& precisions) {
  std::string line = "{\"name\":\"caches\",\"cases\":[";
  std::string separator;
  for (const std::string& precision : precisions) {
    for (const std::uint32_t shapes : {45U, 300U}) {
      for (const int capacity : {1024, 256, 64, 16, 1}) {
        TONNAGE_ASSIGN(const std::string keys, run(bin, model, {precision, capacity, shapes}));
        line += separator + keys;
        separator = ",";
      }
    }
  }
  return line + "]}";
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  const std::string bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  std::string model = "build/models/encoder-1024";
  std::vector<std::string> precisions;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--model" && i + 1 < argc) {
      model = argv[++i];
      continue;
    }
    if (argument.starts_with("--")) {
      fmt::print(stderr,
                 "usage: tonnage-bench-caches [--model DIR] [PRECISION…], by default fp32 and bf16\n");
      return 64;
    }
    precisions.push_back(argument);
  }
  if (precisions.empty()) precisions = {"fp32", "bf16"};
  const auto line = tonnage::bench::run_all(bin, model, precisions);
  if (!line.is_ok()) {
    fmt::print(stderr, "caches: {}\n", line.status().to_string());
    return 1;
  }
  fmt::print("{}\n", *line);
  return 0;
}
