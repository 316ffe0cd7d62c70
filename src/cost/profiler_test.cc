// SPDX-License-Identifier: Apache-2.0
#include "cost/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace tonnage::cost {
namespace {

constexpr CostOptions kEncoder{64, 32, 1024};

// A worker on paper: peak and time by shape and seed, refusing above the grant.
struct PaperWorker {
  std::function<double(Shape, std::uint32_t)> peak;
  std::function<double(Shape)> seconds = [](Shape s) {
    return 1e-4 + 1e-4 * s.rows * std::max(1U, s.length);
  };
  double elapsed = 0;
  std::vector<ProfileStep> ran{};
  int refusals = 0;

  void drive(Profiler& profiler) {
    while (auto step = profiler.next(from_seconds(elapsed))) {
      ASSERT_LT(ran.size() + static_cast<std::size_t>(refusals), 400U) << "profiling does not end";
      const Bytes peak_bytes(static_cast<std::uint64_t>(peak(step->shape, step->seed)));
      elapsed += seconds(step->shape);
      if (peak_bytes > step->grant) {
        ++refusals;
        profiler.refused(*step, peak_bytes);
        continue;
      }
      ran.push_back(*step);
      profiler.add(*step, {step->shape, peak_bytes, from_seconds(seconds(step->shape))});
    }
  }
  bool has_run(Shape shape) const {
    return std::any_of(ran.begin(), ran.end(), [&](const ProfileStep& step) { return step.shape == shape; });
  }
};

double linear(Shape s, std::uint32_t) { return 13832.0 * s.rows * s.length; }
// Cost c1·n up to 512 positions and c2·n² above: 8.7 times what a fit on short lengths says.
double bends_at_512(Shape s, std::uint32_t) {
  const double n = s.length;
  return s.rows * (n <= 512 ? 27000 * n : 27000 * 8.7 / 2048 * n * n);
}

TEST(Profiler, MeasuresBothEndsOfTheLengthWithOneRow) {
  PaperWorker worker{linear};
  Profiler profiler(kEncoder, ProfileLimits{gib(4)});
  worker.drive(profiler);
  EXPECT_TRUE(worker.has_run({1, 32}));
  EXPECT_TRUE(worker.has_run({1, 1024}));
}

// The program of one row changes above 160 tokens.
void expect_the_change_is_known(const ProfileLimits& limits) {
  const auto peak = [](Shape s, std::uint32_t) {
    const double tokens = 1.0 * s.rows * s.length;
    return s.rows == 1 && s.length <= 160 ? 393216 + 2304 * tokens : 655360 + 2560 * tokens;
  };
  PaperWorker worker{peak};
  Profiler profiler(kEncoder, limits);
  worker.drive(profiler);
  const CostModel model = profiler.take_model();
  for (std::uint32_t length = 33; length <= 1024; length += 7) {
    const double truth = peak({1, length}, 0);
    const auto grant = static_cast<double>(model.grant({1, length}).count());
    EXPECT_GE(grant, truth) << length;
    if (length <= 144 || length > 176) {
      EXPECT_LE(grant, truth * 1.1) << length;
    }
  }
}

TEST(Profiler, LooksForTheLengthAtWhichTheProgramOfOneRowChanges) {
  expect_the_change_is_known({.free = gib(4)});
}

TEST(Profiler, LooksForTheChangeEvenWhereTheGridTookAllShapes) {
  expect_the_change_is_known({.free = gib(4), .max_shapes = 12});
}

TEST(Profiler, LooksForTheLengthsAtWhichScratchJumps) {
  const auto peak = [](Shape s, std::uint32_t) {
    const double block = s.length >= 768 ? 256 : s.length >= 192 ? 64 : 32;
    return 9512.0 * s.rows * s.length + 2 * 4 * block * (std::min(512.0, 1.0 * s.length) + 34);
  };
  PaperWorker worker{peak};
  Profiler profiler(kEncoder, {.free = gib(4)});
  worker.drive(profiler);
  const CostModel model = profiler.take_model();
  for (std::uint32_t length = 32; length <= 1024; length += 32) {
    for (std::uint32_t rows = 1; rows <= 64; rows += 7) {
      const double truth = peak({rows, length}, 0);
      EXPECT_NEAR(1, static_cast<double>(model.predict_peak({rows, length}).count()) / truth, 1e-6)
          << rows << " x " << length;
    }
  }
}

TEST(Profiler, AShapeThatTookItsWorkerAlongComesOnceMoreWithAllThereIsAndNothingAsLargeAfterIt) {
  const auto is_fatal = [](Shape shape) { return shape.rows >= 8 && shape.length >= 256; };
  Profiler profiler(kEncoder, ProfileLimits{gib(4)});
  double elapsed = 0;
  std::vector<ProfileStep> deaths;
  std::size_t runs = 0;
  while (auto step = profiler.next(from_seconds(elapsed))) {
    ASSERT_LT(++runs, 400U) << "profiling does not end";
    elapsed += 0.01;
    if (is_fatal(step->shape)) {
      deaths.push_back(*step);
      profiler.lost(*step);
      profiler.go_on(gib(4));
    } else {
      profiler.add(*step, {step->shape, Bytes(static_cast<std::uint64_t>(linear(step->shape, 0))),
                           from_seconds(0.01)});
    }
  }
  ASSERT_EQ(2U, deaths.size());
  EXPECT_EQ(deaths[0].shape, deaths[1].shape);
  EXPECT_LT(deaths[0].grant, gib(4));
  EXPECT_EQ(gib(4), deaths[1].grant);
  EXPECT_TRUE(profiler.has_measured());
  EXPECT_GT(profiler.take_model().predict_peak({1, 1024}), Bytes());
}

TEST(Profiler, AStepThatWasNotRunComesAgain) {
  Profiler profiler(kEncoder, ProfileLimits{gib(4)});
  const auto step = profiler.next(Duration{});
  profiler.put_back(*step);
  EXPECT_EQ(step->shape, profiler.next(Duration{})->shape);
}

TEST(Profiler, EndsWithTheLargestShapeWhereItWasAskedTo) {
  PaperWorker worker{linear};
  Profiler profiler(kEncoder, ProfileLimits{.free = gib(4), .ends_with_largest = true});
  worker.drive(profiler);
  const auto tokens = [](const ProfileStep& step) { return step.shape.rows * step.shape.length; };
  const auto largest = std::ranges::max(worker.ran, {}, tokens);
  EXPECT_EQ(tokens(largest), tokens(worker.ran.back()));
  EXPECT_TRUE(worker.ran.back().is_repeat);
}

TEST(Profiler, GoesFromSmallToLarge) {
  PaperWorker worker{linear};
  Profiler profiler(kEncoder, ProfileLimits{gib(4)});
  const auto first = profiler.next(Duration(0));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->shape, (Shape{1, 32}));
}

TEST(Profiler, StopsEarlyWhenTheNextFiveShapesWerePredicted) {
  PaperWorker worker{linear};
  Profiler profiler(kEncoder, ProfileLimits{gib(64)});
  worker.drive(profiler);
  const auto shapes =
      std::count_if(worker.ran.begin(), worker.ran.end(), [](const auto& s) { return !s.is_repeat; });
  EXPECT_LE(shapes, 24);
  EXPECT_EQ(profiler.take_model().predict_peak({7, 333}).count(), 13832U * 7 * 333);
}

TEST(Profiler, RunsNothingAboveTheTimeBoundButASingleRow) {
  PaperWorker worker{linear};
  worker.seconds = [](Shape s) { return 1e-3 * s.rows * s.length; };  // the longest row takes a second
  Profiler profiler(kEncoder, ProfileLimits{gib(64), milliseconds(250), seconds(1000)});
  worker.drive(profiler);
  for (const ProfileStep& step : worker.ran) {
    EXPECT_TRUE(step.shape.rows == 1 || worker.seconds(step.shape) <= 0.3)
        << step.shape.rows << 'x' << step.shape.length;
  }
  EXPECT_TRUE(worker.has_run({1, 1024}));
}

TEST(Profiler, MeasuresTheMostRowsOfEachLength) {
  PaperWorker worker{linear};
  worker.seconds = [](Shape s) { return 1e-4 * s.rows * s.length; };
  Profiler profiler(kEncoder, ProfileLimits{gib(64), milliseconds(250), seconds(1000)});
  worker.drive(profiler);
  EXPECT_TRUE(worker.has_run({2, 1024}));
  EXPECT_TRUE(worker.has_run({9, 256})) << "2,500 tokens are reachable";
  EXPECT_TRUE(worker.has_run({64, 32}));
}

TEST(Profiler, NeverAsksForMoreThanIsFree) {
  PaperWorker worker{linear};
  Profiler profiler(kEncoder, ProfileLimits{mib(100), seconds(100)});
  worker.drive(profiler);
  for (const ProfileStep& step : worker.ran) {
    EXPECT_LE(step.grant, mib(100));
    EXPECT_LE(linear(step.shape, 0), static_cast<double>(mib(100).count()));
  }
  EXPECT_LE(worker.refusals, 6);
}

TEST(Profiler, EndsWithoutAModelWhenNotEvenOneRowFits) {
  PaperWorker worker{[](Shape, std::uint32_t) { return 1e9; }};
  Profiler profiler(kEncoder, ProfileLimits{mib(100)});
  worker.drive(profiler);
  EXPECT_TRUE(worker.ran.empty());
  EXPECT_EQ(profiler.take_model().fit().reason(), "no_profile");
}

TEST(Profiler, KeepsItsBudgetOfTimeAndShapes) {
  PaperWorker worker{bends_at_512};
  worker.seconds = [](Shape) { return 1.0; };
  Profiler profiler(kEncoder, ProfileLimits{gib(64), seconds(2), seconds(20), 40});
  worker.drive(profiler);
  EXPECT_LE(worker.elapsed, 21.0);
  EXPECT_TRUE(worker.has_run({1, 1024})) << "the longest row is a corner";
}

TEST(Profiler, RepeatsThreeShapesWithOtherValues) {
  PaperWorker worker{
      [](Shape s, std::uint32_t seed) { return (seed == 2 ? 3.0 : 1.0) * 1e5 * s.rows * s.length; }};
  Profiler profiler(kEncoder, ProfileLimits{gib(64)});
  worker.drive(profiler);
  EXPECT_EQ(profiler.take_model().determinism(), Determinism::kValueDependent);
}

// A14: a fit on short lengths would be wrong by 8.7 times; the longest length is measured instead.
TEST(Profiler, LetsNoExtrapolationDecideAboutTheLongestLength) {
  PaperWorker worker{bends_at_512};
  const CostOptions options{16, 32, 2048};
  Profiler profiler(options, ProfileLimits{gib(64), seconds(100), seconds(1000)});
  worker.drive(profiler);
  const CostModel model = profiler.take_model();
  EXPECT_GE(static_cast<double>(model.grant({1, 2048}).count()), bends_at_512({1, 2048}, 0));
  // A13: and the prediction stays within a factor of two of the truth over the whole grid.
  for (std::uint32_t length = 32; length <= 2048; length += 32) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      const double ratio =
          bends_at_512({rows, length}, 0) / static_cast<double>(model.grant({rows, length}).count());
      EXPECT_LE(ratio, 1.0) << rows << 'x' << length;
      EXPECT_GE(ratio, 0.4) << rows << 'x' << length;
    }
  }
}

TEST(Profiler, ShowsItsProgress) {
  PaperWorker worker{linear};
  Profiler profiler(kEncoder, ProfileLimits{gib(4)});
  EXPECT_EQ(profiler.progress(), 0.0);
  worker.drive(profiler);
  EXPECT_LE(profiler.progress(), 1.0);
  EXPECT_GE(profiler.progress(), 0.5);
}

}  // namespace
}  // namespace tonnage::cost
