// SPDX-License-Identifier: Apache-2.0
#include "cost/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace tonnage::cost {
namespace {

constexpr CostOptions kEncoder{64, 32, 1024};

Sample sample(Shape shape, double peak, double micros = 0) {
  const double time = micros > 0 ? micros : 100 + 10.0 * shape.rows * std::max(1U, shape.length);
  return {shape, Bytes(static_cast<std::uint64_t>(peak)), from_seconds(time * 1e-6)};
}

// What a fused-attention encoder costs: so many bytes per padded token.
double linear_cost(Shape s) { return 13832.0 * s.rows * s.length; }
double eager_cost(Shape s) {
  return 50000.0 + 14000.0 * s.rows * s.length + 96.0 * s.rows * s.length * s.length;
}
// Two program points: the larger one decides.
double two_points(Shape s) {
  return std::max(9000.0 * s.rows * s.length, 18.0 * s.rows * s.length * s.length);
}

// As measured of two layers with eager attention: a plane decides below 80 positions, another above.
double eager_layers(Shape s) {
  const double tokens = 1.0 * s.rows * s.length;
  return std::max(4608 * tokens, 12 + 2048 * tokens + 32 * tokens * s.length);
}
// As measured of two convolutions: one short row goes by a way that needs no scratch.
double convolutions(Shape s) {
  const double tokens = 1.0 * s.rows * s.length;
  if (s.rows == 1 && s.length <= 64) return 4608 * tokens;
  if (s.rows == 1 && s.length <= 160) return 393216 + 2304 * tokens;
  return std::max(655360 + 2560 * tokens, 3072 * tokens);
}

template <typename Cost>
CostModel profiled(const CostOptions& options, Cost cost, std::uint64_t max_tokens = 1U << 14) {
  CostModel model(options);
  for (std::uint32_t length = options.pad_multiple; length <= options.max_length; length *= 2) {
    for (std::uint32_t rows = 1; rows <= options.max_rows; rows *= 2) {
      if (rows > 1 && std::uint64_t{rows} * length > max_tokens) continue;
      model.add_profile(sample({rows, length}, cost(Shape{rows, length})));
    }
  }
  for (const Shape shape : {Shape{1, 32}, Shape{4, 128}}) model.add_repeat(sample(shape, cost(shape)));
  EXPECT_TRUE(model.fit().is_ok());
  return model;
}

template <typename Cost>
double worst_error(const CostModel& model, Cost cost) {
  double worst = 0;
  for (std::uint32_t length = 33; length <= 1024; length += 37) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      const double truth = cost(Shape{rows, length});
      const auto predicted = static_cast<double>(model.predict_peak({rows, length}).count());
      worst = std::max(worst, std::abs(predicted / truth - 1));
    }
  }
  return worst;
}

TEST(CostModel, RefusesToFitWithoutAMeasuredShape) {
  CostModel model(kEncoder);
  EXPECT_EQ(model.fit().reason(), "no_profile");
}

TEST(CostModel, LearnsALinearCostToTheByte) {
  const CostModel model = profiled(kEncoder, linear_cost);
  EXPECT_EQ(model.determinism(), Determinism::kDeterministic);
  EXPECT_LE(model.margin(), 0.02);
  EXPECT_LE(worst_error(model, linear_cost), 1e-6);
}

TEST(CostModel, LearnsAQuadraticCost) {
  EXPECT_LE(worst_error(profiled(kEncoder, eager_cost), eager_cost), 1e-3);
}

TEST(CostModel, LearnsAMaximumOfTwoProgramPoints) {
  EXPECT_LE(worst_error(profiled(kEncoder, two_points), two_points), 0.01);
}

// One of the two decides at the shortest length alone: beyond it must go with tokens, not with rows.
TEST(CostModel, KnowsBetweenTwoLengthsWhichProgramPointDecides) {
  const auto cost = [](Shape s) {
    return std::max(4608.0 * s.rows * s.length, (2560 + 50.0 * s.length) * s.rows * s.length);
  };
  const CostModel model = profiled(kEncoder, cost);
  for (std::uint32_t length = 33; length < 64; ++length) {
    const Shape shape{5, length};
    EXPECT_GE(static_cast<double>(model.grant(shape).count()), cost(shape)) << length;
    EXPECT_LE(static_cast<double>(model.predict_peak(shape).count()), cost(shape) * 1.01) << length;
  }
}

TEST(CostModel, TakesThePlanesThatMostPeaksLieOnAmongThoseThatFitTheMeasuredOnes) {
  // Three terms go through the three shortest lengths as well, and lie below all that is between them.
  EXPECT_LT(worst_error(profiled(kEncoder, eager_layers), eager_layers), 2e-4);
}

TEST(CostModel, OneRowThatNeedsNoScratchDoesNotBendWhatIsSaidOfOtherShapes) {
  const CostModel model = profiled(kEncoder, convolutions);
  for (std::uint32_t length = 33; length <= 1024; length += 37) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      const double truth = convolutions({rows, length});
      EXPECT_GE(static_cast<double>(model.grant({rows, length}).count()), truth) << rows << " x " << length;
      const auto predicted = static_cast<double>(model.predict_peak({rows, length}).count());
      if (rows > 1) {
        EXPECT_NEAR(1, predicted / truth, 1e-4) << rows << " x " << length;
      }
    }
  }
}

TEST(CostModel, ExceptionsThatLieOnALineAreAProgramOfTheirOwn) {
  const auto cost = [](Shape s) {
    const double tokens = 1.0 * s.rows * s.length;
    return s.rows == 1 && s.length <= 150 ? 3000 + 500 * tokens : 655360 + 2560 * tokens;
  };
  const CostModel model = profiled(kEncoder, cost);
  for (std::uint32_t length = 32; length <= 128; ++length) {
    EXPECT_NEAR(cost({1, length}), static_cast<double>(model.predict_peak({1, length}).count()), 1) << length;
  }
  EXPECT_GE(static_cast<double>(model.predict_peak({1, 160}).count()), cost({1, 160}))
      << "not beyond its end";
}

// As measured of an attention that a compiler made: scratch for each of two threads, by blocks of the
// sequence.
double compiled_attention(Shape s) {
  const double block = s.length >= 768 ? 256 : s.length >= 192 ? 64 : 32;
  return 9512.0 * s.rows * s.length + 2 * 4 * block * (std::min(512.0, 1.0 * s.length) + 34);
}

TEST(CostModel, KnowsAPartThatJumpsWithTheLengthAlone) {
  CostModel model(kEncoder);
  for (const std::uint32_t length : {32U, 64U, 128U, 176U, 192U, 256U, 512U, 752U, 768U, 1024U}) {
    model.add_profile(sample({1, length}, compiled_attention({1, length})));
    if (length == 32 || length == 256 || length == 1024) {
      for (const std::uint32_t rows : {2U, 8U})
        model.add_profile(sample({rows, length}, compiled_attention({rows, length})));
    }
  }
  ASSERT_TRUE(model.fit().is_ok());
  for (std::uint32_t length = 32; length <= 1024; length += 8) {
    if ((length > 176 && length < 192) || length > 512) continue;
    for (const std::uint32_t rows : {1U, 3U, 16U}) {
      const double truth = compiled_attention({rows, length});
      EXPECT_NEAR(1, static_cast<double>(model.predict_peak({rows, length}).count()) / truth, 1e-6)
          << rows << " x " << length;
    }
  }
  const Shape between{1, 184};
  EXPECT_GE(static_cast<double>(model.predict_peak(between).count()), compiled_attention(between));
  EXPECT_EQ((std::vector<Gap>{{1, 176, 192}, {1, 752, 768}}), model.gaps());
}

TEST(CostModel, TwoExceptionsAreNoLine) {
  const auto cost = [](Shape s) {
    return s.rows == 1 && s.length <= 64 ? 100.0 * s.length : 1000.0 * s.rows * s.length;
  };
  const CostModel model = profiled(kEncoder, cost);
  EXPECT_EQ(Bytes(6400), model.predict_peak({1, 48})) << "the next longer one that was measured";
}

TEST(CostModel, LearnsAModelWithoutAFreeDim) {
  CostModel model(CostOptions{64, 32, 0});
  for (std::uint32_t rows = 1; rows <= 64; rows *= 2) model.add_profile(sample({rows, 0}, 1e6 + 4e5 * rows));
  ASSERT_TRUE(model.fit().is_ok());
  EXPECT_NEAR(static_cast<double>(model.predict_peak({48, 0}).count()), 1e6 + 4e5 * 48, 100);
  EXPECT_EQ(model.table().columns(), 1U);
  EXPECT_GE(model.table().grant(48, 0), model.predict_peak({48, 0}));
}

TEST(CostModel, RoundsGrantsUp) {
  const CostModel model = profiled(kEncoder, linear_cost);
  const Bytes grant = model.grant({3, 40});
  EXPECT_EQ(grant.count() % kib(4).count(), 0U);
  EXPECT_GE(static_cast<double>(grant.count()), linear_cost({3, 40}) * (1 + model.margin()));
  EXPECT_LE(static_cast<double>(grant.count()), linear_cost({3, 40}) * (1 + model.margin()) + 65536);
}

TEST(CostModel, NeverGrantsBelowTheTruthOnUnseenShapesOfItsFamily) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const double base = random.unit() * 1e6;
    const double per_row = random.unit() * 1e5;
    const double per_token = 100 + random.unit() * 3e4;
    const double per_square = random.below(2) == 0 ? 0 : random.unit() * 100;
    const auto cost = [&](Shape s) {
      return base + per_row * s.rows + per_token * s.rows * s.length +
             per_square * s.rows * s.length * s.length;
    };
    const CostModel model = profiled(kEncoder, cost);
    for (int i = 0; i < 200; ++i) {
      const Shape shape{static_cast<std::uint32_t>(random.between(1, 64)),
                        static_cast<std::uint32_t>(random.between(1, 1024))};
      const auto grant = static_cast<double>(model.grant(shape).count());
      ASSERT_GE(grant, cost(shape)) << "seed " << seed << " rows " << shape.rows << " length "
                                    << shape.length;
      ASSERT_LE(grant, cost(shape) * 1.05 + 65536)
          << "seed " << seed << " rows " << shape.rows << " length " << shape.length;
    }
  }
}

TEST(CostModel, StaysBetweenTheMeasuredNeighboursWhereNoPlaneFits) {
  // Steps of a runtime that rounds its buffers up to powers of two: monotone, no plane.
  const auto steps = [](Shape s) { return std::exp2(std::ceil(std::log2(20000.0 * s.rows * s.length))); };
  const CostModel model = profiled(kEncoder, steps);
  for (std::uint32_t length = 33; length < 1024; length += 61) {
    for (std::uint32_t rows = 1; rows <= 16; ++rows) {
      const auto predicted = static_cast<double>(model.predict_peak({rows, length}).count());
      const auto upper = std::exp2(std::ceil(std::log2(rows)));
      EXPECT_LE(predicted, steps(Shape{static_cast<std::uint32_t>(upper),
                                       std::uint32_t(std::exp2(std::ceil(std::log2(length))))}));
    }
  }
}

TEST(CostModel, KeepsTheTableMonotoneInRowsAndLength) {
  const CostModel model = profiled(kEncoder, two_points);
  const CostTable& table = model.table();
  for (std::uint32_t column = 0; column < table.columns(); ++column) {
    for (std::uint32_t rows = 2; rows <= table.max_rows(); ++rows) {
      ASSERT_GE(table.grant(rows, column), table.grant(rows - 1, column));
      ASSERT_GE(table.time(rows, column), table.time(rows - 1, column));
      if (column == 0) continue;
      ASSERT_GE(table.grant(rows, column), table.grant(rows, column - 1));
      ASSERT_GE(table.time(rows, column), table.time(rows, column - 1));
    }
  }
}

TEST(CostModel, TellsValueDependentModelsByTheirRepeats) {
  CostModel model(kEncoder);
  for (std::uint32_t rows = 1; rows <= 16; rows *= 2) {
    model.add_profile(sample({rows, 64}, 1e6 * rows));
    model.add_repeat(sample({rows, 64}, 4e6 * rows));
  }
  ASSERT_TRUE(model.fit().is_ok());
  EXPECT_EQ(model.determinism(), Determinism::kValueDependent);
  EXPECT_GE(model.margin(), 0.03);
  EXPECT_GE(static_cast<double>(model.grant({5, 64}).count()), 4e6 * 5);
}

TEST(CostModel, RaisesTheBucketOfAMissAtOnceAndWithoutACap) {
  CostModel model = profiled(kEncoder, linear_cost);
  const double truth = 8.7 * linear_cost({8, 512});
  model.observe_over_grant({8, 512}, Bytes(static_cast<std::uint64_t>(truth)));
  EXPECT_GE(static_cast<double>(model.grant({8, 512}).count()), truth);
  EXPECT_GE(static_cast<double>(model.table().grant(8, model.table().column_of(512)).count()), truth);
  EXPECT_GE(model.table().grant(9, model.table().column_of(512)),
            model.table().grant(8, model.table().column_of(512)));
}

TEST(CostModel, BoundsWhatAMissSaysOfOtherShapes) {
  CostModel model = profiled(kEncoder, linear_cost);
  const double before = static_cast<double>(model.grant({2, 64}).count());
  model.observe_over_grant({8, 512}, gib(8));
  EXPECT_LE(static_cast<double>(model.grant({2, 64}).count()), before * 1.5 + 65536);
}

TEST(CostModel, DoublesAfterASecondRefusalInARow) {
  CostModel model = profiled(kEncoder, linear_cost);
  model.observe_over_grant({8, 512}, mib(70));
  const Bytes first = model.grant({8, 512});
  model.observe_over_grant({8, 512}, mib(71));
  EXPECT_GE(model.grant({8, 512}).count(), 19 * first.count() / 10);
}

TEST(CostModel, LetsABoundFallByAtMostFivePercentPerHundredBatches) {
  CostModel model = profiled(kEncoder, linear_cost);
  const double truth = linear_cost({8, 512});
  model.observe_over_grant({8, 512}, Bytes(static_cast<std::uint64_t>(3 * truth)));
  double last = static_cast<double>(model.predict_peak({8, 512}).count());
  for (int hundred = 0; hundred < 40; ++hundred) {
    for (int i = 0; i < 100; ++i) model.observe(sample({8, 512}, truth));
    const auto now = static_cast<double>(model.predict_peak({8, 512}).count());
    EXPECT_GE(now, last * 0.95 - 1);
    EXPECT_LE(now, last);
    last = now;
  }
  EXPECT_NEAR(last, truth, truth * 0.001);
  EXPECT_LE(static_cast<double>(model.grant({2, 64}).count()), linear_cost({2, 64}) * 1.02 + 65536);
}

TEST(CostModel, KeepsTheLargestRecentPeakOfAValueDependentModel) {
  CostModel model(kEncoder);
  for (std::uint32_t rows = 1; rows <= 16; rows *= 2) {
    model.add_profile(sample({rows, 64}, 1e6 * rows));
    model.add_repeat(sample({rows, 64}, 2e6 * rows));
  }
  ASSERT_TRUE(model.fit().is_ok());
  for (int i = 0; i < 3000; ++i) model.observe(sample({4, 64}, i % 400 == 0 ? 9e6 : 4e6));
  EXPECT_GE(static_cast<double>(model.grant({4, 64}).count()), 9e6);
}

TEST(CostModel, StopsTrustingADeterministicModelThatChangesItsPeak) {
  CostModel model = profiled(kEncoder, linear_cost);
  model.observe(sample({4, 128}, linear_cost({4, 128})));
  model.observe(sample({4, 128}, 1.3 * linear_cost({4, 128})));
  EXPECT_EQ(model.determinism(), Determinism::kValueDependent);
  EXPECT_GE(static_cast<double>(model.table().grant(4, 3).count()), 1.3 * linear_cost({4, 128}));
}

TEST(CostModel, FollowsASlowerMachineByItsDriftAndLeavesTheTableAlone) {
  CostModel model = profiled(kEncoder, linear_cost);
  const Duration before = model.table().time(4, 3);
  for (int i = 0; i < 100; ++i) {
    const Shape shape{1U << (i % 4), 32U << (i % 3)};
    model.observe(sample(shape, linear_cost(shape), 2 * (100 + 10.0 * shape.rows * shape.length)));
  }
  EXPECT_NEAR(model.drift(), 2.0, 0.2);
  EXPECT_NEAR(to_seconds(model.table().time(4, 3)), to_seconds(before), 0.2 * to_seconds(before));
}

// Predicted ÷ actual of the n-th batch after times have become `factor` of what they were.
double ratio_after(CostModel& model, double factor, int n) {
  Random random(5);
  double log_ratio = 0;
  for (int i = 0; i < n; ++i) {
    const Shape shape{1U << (i % 4), 32U << (i % 3)};
    const double actual = factor * (100 + 10.0 * shape.rows * shape.length);
    const double noisy = actual * (0.8 + 0.4 * random.unit());
    if (i >= n - 3) log_ratio += std::log(to_seconds(model.predict_time(shape)) * 1e6 / actual) / 3;
    model.observe(sample(shape, linear_cost(shape), noisy));
  }
  return std::exp(log_ratio);
}

TEST(CostModel, FollowsANeighbourThatComesAndGoesWithinTwentyBatches) {
  CostModel model = profiled(kEncoder, linear_cost);
  for (const double factor : {1.0, 3.0, 1.0, 0.4, 1.0}) {
    const double after = ratio_after(model, factor, 20);
    EXPECT_GT(after, 0.8) << "× " << factor;
    EXPECT_LT(after, 1.25) << "× " << factor;
    ratio_after(model, factor, 100);
  }
}

TEST(CostModel, OneSlowBatchMovesTheDriftLittle) {
  CostModel model = profiled(kEncoder, linear_cost);
  model.observe(sample({4, 64}, linear_cost({4, 64}), 50 * (100 + 10.0 * 4 * 64)));
  EXPECT_LT(model.drift(), 1.5);
}

TEST(CostModel, MovesACellOnlyAsFarAsItsSamplesCarry) {
  CostModel model = profiled(kEncoder, linear_cost);
  const double before = to_seconds(model.predict_time({4, 96}));
  model.observe(sample({4, 96}, linear_cost({4, 96}), 40000));
  EXPECT_LE(to_seconds(model.predict_time({4, 96})), 2 * before);
}

TEST(CostModel, SurvivesItsTextForm) {
  CostModel model = profiled(kEncoder, eager_cost);
  model.observe_over_grant({8, 512}, gib(2));
  model.observe(sample({4, 96}, eager_cost({4, 96})));
  const auto copy = CostModel::from_text(model.to_text(), kEncoder);
  ASSERT_TRUE(copy.is_ok()) << copy.status().to_string();
  EXPECT_EQ(copy->determinism(), model.determinism());
  for (const Shape shape : {Shape{8, 512}, Shape{3, 77}, Shape{4, 96}}) {
    const auto was = static_cast<double>(model.predict_peak(shape).count());
    EXPECT_GE(static_cast<double>(copy->predict_peak(shape).count()), was / 1.5 - 1);
  }
  EXPECT_EQ(copy->predict_peak({8, 512}), model.predict_peak({8, 512}));
}

TEST(CostModel, RefusesAProfileOfOtherLimitsOrAnotherVersionOrDamage) {
  const std::string text = profiled(kEncoder, linear_cost).to_text();
  EXPECT_EQ(CostModel::from_text(text, CostOptions{32, 32, 1024}).status().reason(), "bad_profile");
  EXPECT_EQ(CostModel::from_text("tonnage-profile 0\n" + text, kEncoder).status().reason(), "bad_profile");
  EXPECT_EQ(CostModel::from_text(text + "shape 1 x\n", kEncoder).status().reason(), "bad_profile");
  EXPECT_EQ(CostModel::from_text("", kEncoder).status().reason(), "bad_profile");
}

}  // namespace
}  // namespace tonnage::cost
