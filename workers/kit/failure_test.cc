// SPDX-License-Identifier: Apache-2.0
#include "kit/failure.h"

#include <gtest/gtest.h>

#include "kit/memory_meter.h"

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

// A device on which everything fails at once.
class BrokenDevice final : public TensorMemory {
 public:
  void begin(Bytes) override {}
  void end() override {}
  Bytes live() const override { return mib(5); }
  Bytes peak() const override { return mib(1); }
  bool over_grant() const override { return true; }
  Bytes needed() const override { return mib(9); }
  bool pressure() const override { return true; }
  bool is_broken() const override { return true; }
};

TEST(Failure, OfABrokenDeviceIsNeverOneOfMemory) {
  const BrokenDevice device;
  const RunError error = run_failure(device, internal("bad_output", "device-side assert"));
  EXPECT_EQ(ErrorKind::kStickyDevice, error.kind);
  EXPECT_EQ(Bytes(), error.needed);
  EXPECT_EQ("device-side assert", error.text);
  EXPECT_EQ("sticky_device", load_failure(device, {}, internal("over_grant", "")).reason());
}

}  // namespace
}  // namespace tonnage::kit
