// SPDX-License-Identifier: Apache-2.0
// Models that share a device and a budget, and a machine that becomes slower, with the code that `tonnage
// serve` runs on a manual clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "planner/arbiter.h"
#include "testkit/pipeline_rig.h"

namespace tonnage {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;
using testkit::Outcome;
using testkit::PipelineRig;

// Two models that always have work; batches of "fast" are padded to 32, those of "slow" to 512.
class SharedDevice {
 public:
  static constexpr std::array<Duration, 2> kTimes = {milliseconds(5), milliseconds(200)};
  static std::size_t model_of(const FakeBatch& batch) { return batch.run.length > 32 ? 1 : 0; }

  SharedDevice(double fast_weight, double slow_weight) {
    rig_.processes.keeps_names = false;
    rig_.processes.model.time = [](const FakeBatch& batch) { return kTimes.at(model_of(batch)); };
    for (const auto& [name, weight] : {std::pair{"fast", fast_weight}, {"slow", slow_weight}}) {
      model::ModelSpec spec = testkit::sum_spec(name == std::string_view("fast") ? 32 : 512);
      spec.name = name;
      spec.weight = weight;
      spec.batching.max_rows = 1;
      rig_.serve(std::move(spec));
    }
    // Called once for each batch, when it ends.
    rig_.processes.model.fault = [this](const FakeBatch& batch) {
      const std::size_t model = model_of(batch);
      used_.at(model) += to_seconds(kTimes.at(model));
      const Duration waited = rig_.loop.now() - last_end_.at(model) - kTimes.at(model);
      if (last_end_.at(model) != TimePoint{})
        longest_wait_.at(model) = std::max(longest_wait_.at(model), waited);
      last_end_.at(model) = rig_.loop.now();
      return FakeFault::kNone;
    };
  }
  void keep_full(Duration how_long) {
    const TimePoint end = rig_.loop.now() + how_long;
    while (rig_.loop.now() < end) {
      for (const char* name : {"fast", "slow"}) {
        const std::size_t wanted = name == std::string_view("fast") ? 400 : 20;
        while (rig_.model(name).waiting_rows() < wanted) {
          rig_.ask({1, name == std::string_view("fast") ? 32U : 512U, 1, seconds(3600), name});
        }
      }
      rig_.loop.advance(seconds(1));
    }
  }

  PipelineRig& rig() { return rig_; }
  double ratio() const { return used_[0] / used_[1]; }
  Duration longest_wait(std::size_t model) const { return longest_wait_.at(model); }

 private:
  PipelineRig rig_;
  std::array<double, 2> used_{};
  std::array<TimePoint, 2> last_end_{};
  std::array<Duration, 2> longest_wait_{};
};

TEST(Sharing, WeightsDivideTheTimeAndNobodyWaitsLongerThanTheBound) {
  for (const auto& [fast, slow] : {std::pair{3.0, 1.0}, {1.0, 3.0}, {1.0, 1.0}}) {
    SharedDevice device(fast, slow);
    device.keep_full(seconds(300));
    EXPECT_NEAR(fast / slow, device.ratio(), 0.1 * fast / slow);
    std::array<planner::Contender, 2> lanes;
    lanes[0].weight = fast;
    lanes[1].weight = slow;
    for (std::size_t i = 0; i < 2; ++i) lanes.at(i).time = SharedDevice::kTimes.at(i);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_LE(device.longest_wait(i), planner::wait_bound(lanes, i)) << fast << " : " << slow << ", " << i;
    }
  }
}

TEST(Sharing, AdmissionCountsOnTheModelsShareOnly) {
  SharedDevice device(1, 3);
  device.keep_full(seconds(20));
  // What waits for "fast" takes 2 s alone, and four times that beside a model of three times its weight.
  const auto early = device.rig().ask({1, 32, 1, seconds(4), "fast"});
  ASSERT_TRUE(early->is_answered());
  EXPECT_EQ("queue_time", early->status->reason());
  const auto late = device.rig().ask({1, 32, 1, seconds(12), "fast"});
  device.keep_full(seconds(12));
  ASSERT_TRUE(late->is_answered());
  EXPECT_TRUE(late->status->is_ok()) << late->status->to_string();
}

// Random models whose large batches need most of a small budget: each request is answered, and none
// waits longer than a fair turn of everything that was asked before it.
TEST(SharedBudget, RandomModelsNeverStarveEachOther) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    PipelineRig rig(mib(static_cast<std::uint64_t>(random.between(120, 200))));
    const auto bytes_per_token = static_cast<std::uint64_t>(random.between(256, 4096));
    const Duration time = milliseconds(random.between(2, 60));
    rig.processes.model.peak = [=](const FakeBatch& batch) {
      return Bytes(bytes_per_token * batch.run.rows * batch.run.length);
    };
    rig.processes.model.time = [=](const FakeBatch&) { return time; };
    for (const char* name : {"a", "b"}) {
      model::ModelSpec spec = testkit::sum_spec();
      spec.name = name;
      spec.threads = 1 + static_cast<std::uint32_t>(random.below(2));
      spec.weight = 0.5 + random.unit();
      rig.serve(std::move(spec));
    }
    std::vector<std::shared_ptr<Outcome>> outcomes;
    for (int i = 0; i < 400; ++i) {
      const auto rows = static_cast<std::uint32_t>(random.between(1, 16));
      const auto length = static_cast<std::uint32_t>(random.between(1, 512));
      outcomes.push_back(rig.ask({rows, length, 1, seconds(120), random.unit() < 0.5 ? "a" : "b"}));
      rig.loop.advance(milliseconds(random.between(0, 10)));
    }
    rig.loop.advance(seconds(120));
    for (const auto& outcome : outcomes) {
      ASSERT_TRUE(outcome->is_answered()) << seed;
      EXPECT_TRUE(outcome->status->is_ok()) << seed << ": " << outcome->status->to_string();
    }
    EXPECT_EQ(0U, rig.pipe->open_requests());
  }
}

// Requests at a steady rate; in the middle a foreign thread makes every batch three times as long.
class Drifting : public testing::Test {
 protected:
  struct Phase {
    int refused = 0;
    int late = 0;
    std::size_t longest_queue = 0;
  };
  Drifting() {
    rig_.processes.keeps_names = false;
    rig_.processes.model.time = [this](const FakeBatch& batch) {
      const double alone = 1e-3 + 50e-6 * batch.run.rows * batch.run.length;
      return from_seconds(alone * factor_);
    };
    rig_.serve(testkit::sum_spec());
    rig_.processes.model.fault = [this](const FakeBatch& batch) {
      const double predicted =
          to_seconds(rig_.model().cost->predict_time({batch.run.rows, batch.run.length}));
      ratios_.push_back(predicted / to_seconds(rig_.processes.model.time(batch)));
      return FakeFault::kNone;
    };
  }
  // 100 rows of 128 a second: 0.7 of what the machine can do alone.
  Phase run(Duration how_long) {
    Phase phase;
    std::vector<std::shared_ptr<Outcome>> outcomes;
    for (Duration at{}; at < how_long; at += milliseconds(10)) {
      outcomes.push_back(rig_.ask({1, 128, 1, seconds(2)}));
      rig_.loop.advance(milliseconds(10));
      phase.longest_queue = std::max(phase.longest_queue, rig_.model().waiting_rows());
    }
    rig_.loop.advance(seconds(3));
    for (const auto& outcome : outcomes) {
      if (outcome->status->reason() == "queue_time") ++phase.refused;
      if (outcome->status->reason() == "deadline") ++phase.late;
    }
    return phase;
  }
  PipelineRig rig_;
  double factor_ = 1;
  std::vector<double> ratios_;  // predicted ÷ actual, by batch
};

TEST_F(Drifting, PredictionsFollowAForeignThreadAndAdmissionTightens) {
  const Phase before = run(seconds(20));
  EXPECT_EQ(0, before.refused + before.late);
  const std::size_t at = ratios_.size();
  factor_ = 3;
  const Phase slow = run(seconds(20));
  ASSERT_GT(ratios_.size(), at + 40);
  EXPECT_LT(ratios_[at], 0.5) << "it came unannounced";
  for (std::size_t i = at + 20; i < ratios_.size(); ++i) {
    ASSERT_GT(ratios_[i], 0.8) << "batch " << i - at;
    ASSERT_LT(ratios_[i], 1.25) << "batch " << i - at;
  }
  EXPECT_GT(slow.refused, 500) << "twice as much is asked as can be done";
  EXPECT_LT(slow.late, 100) << "who is let in is answered in time";
  EXPECT_EQ(0U, rig_.model().deaths()) << "nothing is killed for it";

  factor_ = 1;
  const std::size_t again = ratios_.size();
  run(seconds(20));
  for (std::size_t i = again + 20; i < ratios_.size(); ++i) ASSERT_LT(ratios_[i], 1.25) << i - again;
  const Phase after = run(seconds(20));
  EXPECT_EQ(0, after.refused + after.late) << "and it loosens again";
}

}  // namespace
}  // namespace tonnage
