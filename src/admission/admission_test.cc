// SPDX-License-Identifier: Apache-2.0
#include "admission/admission.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace tonnage::admission {
namespace {

constexpr TimePoint kNow{seconds(1000)};

model::ModelSpec spec_with_length() {
  model::ModelSpec spec;
  spec.name = "encoder";
  spec.max_length = 512;
  spec.batching.pad_multiple = 32;
  spec.batching.max_rows = 16;
  return spec;
}

// 100 KiB and 1 ms per padded token.
cost::CostModel linear_cost() {
  cost::CostModel cost({.max_rows = 16, .pad_multiple = 32, .max_length = 512});
  for (const std::uint32_t rows : {1U, 2U, 3U, 4U, 8U, 16U}) {
    for (const std::uint32_t length : {32U, 64U, 96U, 128U, 256U, 512U}) {
      const cost::Sample sample{.shape = {.rows = rows, .length = length},
                                .peak = kib(100) * rows * length,
                                .time = milliseconds(rows * length)};
      cost.add_profile(sample);
      if (rows == 1) cost.add_repeat(sample);
    }
  }
  if (!cost.fit().is_ok()) std::abort();
  return cost;
}

class Decide : public ::testing::Test {
 protected:
  Decide() {
    question.spec = &spec;
    question.cost = &cost;
    question.rows = 1;
    question.longest = 30;
    question.envelope = mib(1);
    question.ingress_limit = mib(32);
    question.largest_possible_grant = gib(1);
    question.now = kNow;
    question.deadline = kNow + seconds(10);
  }

  model::ModelSpec spec = spec_with_length();
  cost::CostModel cost = linear_cost();
  Question question;
};

TEST_F(Decide, LetsInWhatFitsAndEndsInTime) {
  EXPECT_TRUE(decide(question).is_ok());
  question.deadline = kNever;
  question.load.work_ahead = seconds(10000);
  EXPECT_TRUE(decide(question).is_ok()) << "without a deadline only the lane's own bound refuses";
}

struct Refusal {
  const char* what;
  std::function<void(Question&)> change;
  Code code;
  std::string_view reason;
};

TEST_F(Decide, RefusesWithACodeAndAReason) {
  const std::vector<Refusal> table = {
      {"not ready", [](Question& q) { q.ready = false; }, Code::kUnavailable, "not_ready"},
      {"front too small", [](Question& q) { q.envelope = mib(33); }, Code::kTooLarge, "never_fits"},
      {"one row too large", [](Question& q) { q.largest_possible_grant = mib(2); }, Code::kTooLarge,
       "never_fits"},
      {"deadline now", [](Question& q) { q.deadline = q.now; }, Code::kDeadlineExceeded, "expired"},
      {"deadline long past", [](Question& q) { q.deadline = q.now - seconds(9); }, Code::kDeadlineExceeded,
       "expired"},
      {"queue too long", [](Question& q) { q.load.work_ahead = seconds(11); }, Code::kOverloaded,
       "queue_time"},
      {"batch running", [](Question& q) { q.load.residual = seconds(11); }, Code::kOverloaded, "queue_time"},
      {"itself too slow", [](Question& q) { q.deadline = q.now + milliseconds(20); }, Code::kOverloaded,
       "queue_time"},
  };
  for (const Refusal& refusal : table) {
    Question changed = question;
    refusal.change(changed);
    const Status status = decide(changed);
    EXPECT_EQ(refusal.code, status.code()) << refusal.what;
    EXPECT_EQ(refusal.reason, status.reason()) << refusal.what;
    EXPECT_EQ(refusal.code == Code::kOverloaded, status.retry_after_seconds().has_value()) << refusal.what;
  }
}

TEST_F(Decide, GivesTheFirstReasonThatApplies) {
  question.load.work_ahead = seconds(100);
  EXPECT_EQ("queue_time", decide(question).reason());
  question.deadline = kNow;
  EXPECT_EQ("expired", decide(question).reason());
  question.envelope = gib(1);
  EXPECT_EQ("never_fits", decide(question).reason());
  question.ready = false;
  question.cost = nullptr;  // a model that is still loading has none
  question.not_ready_why = "the weights are being loaded";
  EXPECT_EQ("not_ready", decide(question).reason());
  EXPECT_NE(std::string::npos, decide(question).detail().find("the weights are being loaded"));
}

TEST_F(Decide, SaysWhatIsNeededWhatCanBeHadAndTheLargestLength) {
  question.longest = 512;
  question.largest_possible_grant = mib(30);
  const std::string detail = decide(question).detail();
  const std::uint32_t largest = largest_admissible_length(cost, spec, mib(30));
  EXPECT_NE(std::string::npos, detail.find(format_bytes(cost.grant({.rows = 1, .length = 512})))) << detail;
  EXPECT_NE(std::string::npos, detail.find("30.0 MiB")) << detail;
  EXPECT_NE(std::string::npos, detail.find("512")) << detail;
  EXPECT_NE(std::string::npos, detail.find("largest admissible length is " + std::to_string(largest)))
      << detail;
}

TEST_F(Decide, CountsTheBatchThatTheRowSharesAndTheDriftOfTimes) {
  question.load.work_ahead = seconds(4);  // the deadline is in 10 s
  EXPECT_TRUE(decide(question).is_ok());
  question.load.batch = milliseconds(6500);
  EXPECT_EQ("queue_time", decide(question).reason());
  question.load.batch = Duration{};
  question.load.actual_over_predicted = 3;
  EXPECT_EQ("queue_time", decide(question).reason());
}

TEST_F(Decide, ByFactsAloneLetsInWhatPredictionWouldRefuse) {
  question.load.work_ahead = seconds(10000);
  question.largest_possible_grant = Bytes(1);
  EXPECT_EQ("never_fits", decide(question).reason());
  EXPECT_TRUE(decide_by_facts(question).is_ok());
  question.deadline = kNow;
  EXPECT_EQ("expired", decide_by_facts(question).reason());
  question.envelope = gib(1);
  EXPECT_EQ("never_fits", decide_by_facts(question).reason()) << "that much cannot be held in the server";
}

TEST_F(Decide, AsksForAllRowsAtOnceWhereTheyStayTogether) {
  question.rows = 8;
  question.largest_possible_grant = mib(10);  // one row of 32 needs about 3 MiB, eight 25
  EXPECT_TRUE(decide(question).is_ok()) << "rows that may be spread are looked at one by one";
  spec.rows = model::RowsRule::kTogether;
  EXPECT_EQ("never_fits", decide(question).reason());
  question.largest_possible_grant = gib(1);
  EXPECT_TRUE(decide(question).is_ok());
  question.rows = 17;
  EXPECT_EQ("never_fits", decide(question).reason()) << "more than a batch can hold";
}

TEST_F(Decide, ComputesRetryAfterFromTheExcessWithJitter) {
  struct Case {
    Duration ahead;
    double jitter;
    int lowest;
    int highest;
  };
  for (const Case& c : {Case{milliseconds(10100), 0.0, 1, 1}, Case{seconds(50), 0.0, 41, 41},
                        Case{seconds(50), 0.5, 46, 46}, Case{seconds(50), 0.999, 51, 51},
                        Case{seconds(12), 0.999, 3, 3}, Case{std::chrono::hours(99), 0.999, 86400, 108000}}) {
    question.load.work_ahead = c.ahead;
    question.jitter = c.jitter;
    const auto seconds = decide(question).retry_after_seconds();
    ASSERT_TRUE(seconds.has_value());
    EXPECT_GE(*seconds, c.lowest);
    EXPECT_LE(*seconds, c.highest);
  }
}

TEST(PredictedWait, FollowsShareWorkersAndTheSmoothedError) {
  struct Case {
    Load load;
    Duration wait;
  };
  const std::vector<Case> table = {
      {{}, seconds(0)},
      {{.residual = milliseconds(200)}, milliseconds(200)},
      {{.work_ahead = seconds(6)}, seconds(6)},
      {{.work_ahead = seconds(6), .residual = seconds(1), .workers = 2}, seconds(4)},
      {{.work_ahead = seconds(6), .share = 0.25}, seconds(24)},
      {{.work_ahead = seconds(6),
        .residual = seconds(1),
        .share = 0.5,
        .workers = 2,
        .actual_over_predicted = 1.5},
       milliseconds(10500)},
      {{.work_ahead = seconds(1), .workers = 0}, std::chrono::hours(24)},
  };
  for (const Case& c : table) EXPECT_EQ(c.wait, predicted_wait(c.load)) << to_seconds(c.wait);
}

TEST(LargestAdmissibleLength, IsTheLastThatFits) {
  const model::ModelSpec spec = spec_with_length();
  const cost::CostModel cost = linear_cost();
  for (const std::uint32_t length : {32U, 224U, 512U}) {
    const Bytes grant = cost.grant({.rows = 1, .length = length});
    EXPECT_EQ(length, largest_admissible_length(cost, spec, grant));
    EXPECT_EQ(length - 32, largest_admissible_length(cost, spec, grant - Bytes(1)));
  }
  EXPECT_EQ(512U, largest_admissible_length(cost, spec, gib(100)));
  model::ModelSpec fixed = spec;
  fixed.max_length = 0;
  EXPECT_EQ(0U, largest_admissible_length(cost, fixed, gib(100)));
}

}  // namespace
}  // namespace tonnage::admission
