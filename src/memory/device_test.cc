// SPDX-License-Identifier: Apache-2.0
// Against tests/gpu/fake_nvml.cc; no GPU is needed or used.
#include "memory/device.h"

#include <gtest/gtest.h>

namespace tonnage::memory {
namespace {

DeviceReader opened() {
  auto reader = DeviceReader::open(0, TONNAGE_FAKE_NVML);
  EXPECT_TRUE(reader.is_ok()) << reader.status().to_string();
  return std::move(reader).value();
}

TEST(DeviceReader, ReadsWhatTheDriverSays) {
  const auto reading = opened().read();
  ASSERT_TRUE(reading.is_ok());
  EXPECT_EQ(gib(16), reading->total);
  EXPECT_EQ(mib(4384), reading->used);
}

TEST(DeviceReader, AProcessIsFoundAmongMoreThanTheFirstBufferHolds) {
  const auto use = opened().process_use(4242);
  ASSERT_TRUE(use.is_ok()) << use.status().to_string();
  EXPECT_EQ(mib(700), *use);
}

TEST(DeviceReader, AProcessThatTheDriverDoesNotNameOrCountIsAnErrorNotZero) {
  EXPECT_EQ("not_on_device", opened().process_use(1).status().reason());
  EXPECT_EQ("nvml", opened().process_use(17).status().reason());
}

TEST(DeviceReader, AMissingDriverOrDeviceIsNamed) {
  EXPECT_EQ("no_nvml", DeviceReader::open(0, "libnvidia-ml-that-is-not-there.so").status().reason());
  EXPECT_EQ("no_nvml", DeviceReader::open(0, "libc.so.6").status().reason());
  const Status status = DeviceReader::open(7, TONNAGE_FAKE_NVML).status();
  EXPECT_EQ("no_device", status.reason());
  EXPECT_NE(std::string::npos, status.detail().find("device 7"));
}

}  // namespace
}  // namespace tonnage::memory
