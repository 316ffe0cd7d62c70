// SPDX-License-Identifier: Apache-2.0
// tonnage-bench-growth: what a worker keeps of batches whose shapes never come twice. Drives one worker
// program with random shapes of a text encoder and reads its resident memory from the kernel.
//
// What stays after a trim is outside every allocator that we count: caches per shape of a runtime.
// The last line is one JSON object.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "base/json_text.h"
#include "kit/blocking_front.h"

namespace tonnage::bench {
namespace {

constexpr std::uint32_t kMostTokens = 4096;  // of one batch
constexpr std::uint32_t kMostRows = 32;
constexpr std::uint32_t kLongest = 512;
constexpr std::int64_t kIds = 30000;
constexpr int kReports = 3;

// One line of /proc/PID/status.
Bytes status_of(pid_t pid, std::string_view key) {
  std::ifstream in(fmt::format("/proc/{}/status", pid));
  for (std::string word; in >> word;) {
    if (word != key) continue;
    std::uint64_t kibibytes = 0;
    in >> kibibytes;
    return kib(kibibytes);
  }
  return Bytes();
}
Bytes anonymous_of(pid_t pid) { return status_of(pid, "RssAnon:"); }

Status run(kit::BlockingFront& front, std::uint32_t rows, std::uint32_t length, Bytes& live) {
  const std::array<std::int64_t, 2> dims{rows, length};
  TONNAGE_ASSIGN(const auto shape, tensor::Shape::make(dims));
  const Bytes bytes = shape.bytes_of(tensor::DataType::kInt64);
  const std::uint64_t second = round_up(bytes, Bytes(64)).count();
  const auto slot = as_elements<std::int64_t>(front.slot());
  for (std::size_t i = 0; i < shape.elements(); ++i) {
    slot[i] = static_cast<std::int64_t>(i) * 37 % kIds;
    slot[second / sizeof(std::int64_t) + i] = 1;
  }
  TONNAGE_ASSIGN(const auto outcome,
                 front.run({.slot = 0,
                            .rows = rows,
                            .length = length,
                            .grant = gib(2),
                            .inputs = {{tensor::DataType::kInt64, shape, 0, bytes.count()},
                                       {tensor::DataType::kInt64, shape, second, bytes.count()}}}));
  if (const auto* error = std::get_if<wire::Error>(&outcome)) return internal("run_failed", error->text);
  live = std::get<wire::Done>(outcome).live;
  return Status::ok();
}

Result<std::string> measure(kit::BlockingFront& front, int shapes) {
  std::mt19937 random(7);
  const auto draw = [&](std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(1, most)(random);
  };
  Bytes first_live;
  Bytes live;
  // The largest batch first, so that what comes later is growth and not a larger peak.
  TONNAGE_TRY(run(front, kMostTokens / kLongest, kLongest, first_live));
  TONNAGE_TRY(front.trim().status());
  const Bytes start = anonymous_of(front.pid());
  for (int i = 1; i <= shapes; ++i) {
    const std::uint32_t length = draw(kLongest);
    TONNAGE_TRY(run(front, draw(std::min(kMostRows, kMostTokens / length)), length, live));
    if (i % std::max(1, shapes / kReports) == 0) {
      fmt::print("  {} shapes: resident {}, live {}\n", i, format_bytes(anonymous_of(front.pid())),
                 format_bytes(live));
    }
  }
  const Bytes before_trim = anonymous_of(front.pid());
  TONNAGE_TRY(front.trim().status());
  const Bytes end = anonymous_of(front.pid());
  return fmt::format(
      "{{\"name\":\"growth\",\"runtime\":{},\"shapes\":{},\"weights\":{},\"start\":{},\"before_trim\":{},"
      "\"end\":{},\"growth\":{},\"live_growth\":{}}}",
      json_string(front.loaded_doc().runtime), shapes, front.loaded().weights.count(), start.count(),
      before_trim.count(), end.count(), saturating_sub(end, start).count(),
      saturating_sub(live, first_live).count());
}

}  // namespace
}  // namespace tonnage::bench

int main(int argc, char** argv) {
  using namespace tonnage;
  int shapes = 300;
  const std::string_view last = argc == 4 ? argv[3] : "300";
  if (argc < 3 || argc > 4 || std::from_chars(last.begin(), last.end(), shapes).ptr != last.end() ||
      shapes < 1) {
    fmt::print(stderr,
               "usage: tonnage-bench-growth PROGRAM MODEL [SHAPES]\n"
               "example: tonnage-bench-growth build/release/bin/tonnage-worker-onnx "
               "build/models/encoder-1024/1/model.onnx 300\n");
    return 64;
  }
  auto front = kit::BlockingFront::start(
      {.program = argv[1],
       .environment = {{"OMP_WAIT_POLICY", "passive"}},
       .doc = {.model = "encoder", .version = "1", .route = "any", .path = argv[2], .threads = 2}});
  if (!front.is_ok()) {
    fmt::print(stderr, "growth: {}\n", front.status().to_string());
    return 1;
  }
  // The highest of loading counts mapped files, too: what it says of anonymous memory is a bound.
  fmt::print("  loaded: resident {}, of it anonymous {}, at the highest {}; weights {}, live {}\n",
             format_bytes(bench::status_of(front->pid(), "VmRSS:")),
             format_bytes(bench::anonymous_of(front->pid())),
             format_bytes(bench::status_of(front->pid(), "VmHWM:")), format_bytes(front->loaded().weights),
             format_bytes(front->loaded().live));
  const auto json = bench::measure(*front, shapes);
  if (!json.is_ok()) {
    fmt::print(stderr, "growth: {}\n", json.status().to_string());
    return 1;
  }
  fmt::print("{}\n", *json);
  return 0;
}
