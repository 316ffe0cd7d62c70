// SPDX-License-Identifier: Apache-2.0
#include "kit/failure.h"

#include <gtest/gtest.h>

namespace tonnage::kit {
namespace {

using wire::ErrorKind;

TEST(Failure, IsTheModelsOwnWhereMemoryWasNotRefused) {
  MemoryMeter meter;
  meter.begin(Bytes(10));
  EXPECT_EQ(ErrorKind::kModelError, run_failure(meter, internal("anything", "text")).kind);
  EXPECT_EQ("text", run_failure(meter, internal("anything", "text")).text);
  EXPECT_EQ(ErrorKind::kBadOutput, run_failure(meter, internal("bad_output", "")).kind);
  EXPECT_EQ(ErrorKind::kBadRequest, run_failure(meter, invalid("bad_input", "")).kind);
  EXPECT_EQ("bad_model_file", load_failure(meter, {}, invalid("bad_model_file", "")).reason());
}

TEST(Failure, IsPressureBeforeAnythingThatTheRuntimeSays) {
  MemoryMeter meter;
  meter.begin(Bytes(10));
  meter.flag_pressure();
  EXPECT_EQ(ErrorKind::kPressure, run_failure(meter, internal("bad_output", "")).kind);
  EXPECT_EQ("pressure", load_failure(meter, {}, internal("model_error", "")).reason());
}

TEST(Failure, IsOverGrantBeforePressureAndTellsWhatWasNeeded) {
  MemoryMeter meter;
  meter.begin(Bytes(10));
  EXPECT_TRUE(meter.take(4));
  EXPECT_FALSE(meter.take(8));
  meter.flag_pressure();
  const RunError error = run_failure(meter, internal("model_error", ""));
  EXPECT_EQ(ErrorKind::kOverGrant, error.kind);
  EXPECT_EQ(Bytes(4), error.peak);
  EXPECT_EQ(Bytes(12), error.needed);
  EXPECT_EQ("over_grant", load_failure(meter, {.load_limit = Bytes(10)}, internal("x", "")).reason());
}

}  // namespace
}  // namespace tonnage::kit
