// SPDX-License-Identifier: Apache-2.0
// 20,000 requests of 360 shapes: what a worker holds outside its allocator (oneDNN's caches, pages that
// they pin) reaches a plateau. `./dev soak remainder` is the long form.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "kit/blocking_front.h"
#include "testkit/example_messages.h"
#include "testkit/plateau.h"

namespace tonnage::torch_worker {
namespace {

constexpr int kRequests = 20'000;
constexpr int kReadEvery = 100;
constexpr double kPlateau = 0.01;

struct Series {
  std::vector<double> resident;
  std::vector<double> beyond_libraries;
};

double number(Bytes bytes) { return static_cast<double>(bytes.count()); }

// rows 1-6 × length 1-60.
Series run(const std::string& program, wire::LoadDoc doc) {
  Series series;
  doc.inputs = {{"ids", tensor::DataType::kInt64, {-1, -1}}};
  auto front = kit::BlockingFront::start({.program = std::string(std::getenv("TONNAGE_BIN")) + "/" + program,
                                          .environment = {{"OMP_WAIT_POLICY", "passive"}},
                                          .doc = std::move(doc)});
  EXPECT_TRUE(front.is_ok()) << front.status().to_string();
  if (!front.is_ok()) return series;
  Random random(5);
  for (int i = 1; i <= kRequests; ++i) {
    const auto rows = static_cast<std::uint32_t>(random.between(1, 6));
    const auto length = static_cast<std::uint32_t>(random.between(1, 60));
    const std::size_t bytes = std::size_t{rows} * length * 8;
    for (std::int64_t& id : as_elements<std::int64_t>(front->slot().first(bytes)))
      id = static_cast<std::int64_t>(random.below(1000));
    const auto outcome =
        front->run({.slot = 0,
                    .rows = rows,
                    .length = length,
                    .grant = gib(1),
                    .inputs = {{tensor::DataType::kInt64, testkit::shape_of({rows, length}), 0, bytes}}});
    EXPECT_TRUE(outcome.is_ok() && std::holds_alternative<wire::Done>(*outcome));
    if (testing::Test::HasFailure()) return series;
    if (i % kReadEvery != 0) continue;
    // Without the free pages of malloc, which come and go by the clock.
    const auto trimmed = front->trim();
    const auto stats = front->stat();
    series.resident.push_back(number(trimmed->resident));
    series.beyond_libraries.push_back(number(saturating_sub(trimmed->resident, stats->libraries)));
  }
  return series;
}

// Ten values of a series in MiB.
std::string outline(const std::vector<double>& series) {
  std::string out;
  for (std::size_t i = 1; i <= 10; ++i)
    out += fmt::format(" {:.1f}", series[i * series.size() / 10 - 1] / (1 << 20));
  return out;
}

class Plateaus : public testing::TestWithParam<const char*> {};

TEST_P(Plateaus, AreReachedByWhatAWorkerHoldsUnderManyShapes) {
  const std::string path = std::string(TONNAGE_TORCH_TEST_MODELS) + "/" + GetParam();
  const Series series = run("tonnage-worker-torch", {.model = "toy", .route = "trace", .path = path});
  ASSERT_FALSE(series.resident.empty());
  EXPECT_LT(testkit::growth_of_last_third(series.resident), kPlateau) << outline(series.resident);
  EXPECT_LT(testkit::growth_of_last_third(series.beyond_libraries), kPlateau)
      << outline(series.beyond_libraries);
}
INSTANTIATE_TEST_SUITE_P(Precisions, Plateaus, testing::Values("one_layer.pt", "one_layer_bf16.pt"),
                         [](const auto& one) { return std::string(one.index == 0 ? "fp32" : "bf16"); });

TEST(Plateau, IsNotReachedByAModelThatKeepsBytes) {
  const Series series =
      run("tonnage-worker-stub", {.model = "hoarder",
                                  .route = "stub",
                                  .options = {{"model", "hoarder"}, {"keep_bytes_per_call", "4KiB"}}});
  ASSERT_FALSE(series.resident.empty());
  EXPECT_GT(testkit::growth_of_last_third(series.resident), 0.1);
}

}  // namespace
}  // namespace tonnage::torch_worker
