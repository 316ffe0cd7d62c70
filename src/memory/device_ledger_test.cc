// SPDX-License-Identifier: Apache-2.0
// Against drivers that stand in; no GPU is needed or used.
#include "memory/device_ledger.h"

#include <gtest/gtest.h>

namespace tonnage::memory {
namespace {

struct Driver {
  Bytes total = mib(1000);
  Bytes used = mib(100);
  bool answers = true;
};

class FakeReader final : public DevicePort {
 public:
  explicit FakeReader(const Driver& driver) : driver_(driver) {}
  Result<DeviceReading> read() const override {
    if (!driver_.answers) return Status(Code::kUnavailable, "nvml", "no answer");
    return DeviceReading{driver_.total, driver_.used, driver_.total - driver_.used};
  }
  Result<Bytes> process_use(pid_t) const override { return Status(Code::kNotFound, "not_on_device", ""); }

 private:
  const Driver& driver_;
};

struct DevicesTest : testing::Test {
  Driver driver;
  int opened = 0;
  Devices::Open open = [this](unsigned index) -> Result<std::unique_ptr<DevicePort>> {
    ++opened;
    if (index > 0) return Status(Code::kNotFound, "no_device", "device 1: Invalid Argument");
    std::unique_ptr<DevicePort> port = std::make_unique<FakeReader>(driver);
    return port;
  };
};

TEST_F(DevicesTest, TheBudgetIsNineTenthsOfTheTotalUnlessItWasSaid) {
  Devices by_total(Bytes(), open);
  EXPECT_EQ(mib(900), (*by_total.ledger("cuda:0"))->root().limit());
  Devices said(mib(300), open);
  EXPECT_EQ(mib(300), (*said.ledger("cuda:0"))->root().limit());
}

TEST_F(DevicesTest, ADeviceIsOpenedOnceAndTheSameForAllThatNameIt) {
  Devices devices(Bytes(), open);
  EXPECT_EQ(*devices.ledger("cuda:0"), *devices.ledger("cuda:0"));
  EXPECT_EQ(1, opened);
}

TEST_F(DevicesTest, WhatIsNoDeviceOrNotThereIsSaidAndLeavesNothing) {
  Devices devices(Bytes(), open);
  EXPECT_EQ("no_device", devices.ledger("cuda:1").status().reason());
  for (const char* name : {"cuda", "cuda:", "cuda:x", "cuda:0x", "gpu:0", "cuda:-1"})
    EXPECT_EQ("bad_device", devices.ledger(name).status().reason()) << name;
  EXPECT_TRUE(devices.all().empty());
}

TEST_F(DevicesTest, WhatOthersHoldIsNoRoomAndWhatOursHoldIsNotCountedTwice) {
  Devices devices(Bytes(), open);
  DeviceLedger& ledger = **devices.ledger("cuda:0");
  EXPECT_EQ(mib(800), ledger.root().available());
  {
    const auto ours = ledger.root().child("workers").charge(mib(200));
    ASSERT_TRUE(ours.is_ok());
    driver.used = mib(250);  // the process of ours came up: 150 of the 200
    devices.look();
    EXPECT_EQ(mib(250), ledger.root().used());
  }
  driver.used = mib(100);
  devices.look();
  EXPECT_EQ(mib(100), ledger.root().child("others").used());
}

TEST_F(DevicesTest, ADriverThatStopsAnsweringLeavesTheLastFactsInTheLedger) {
  Devices devices(Bytes(), open);
  DeviceLedger& ledger = **devices.ledger("cuda:0");
  driver.answers = false;
  devices.look();
  EXPECT_FALSE(ledger.reading().has_value());
  EXPECT_EQ(mib(100), ledger.root().child("others").used());
}

TEST_F(DevicesTest, MemoryThatComesBackOrDoesNotSufficeIsTold) {
  Devices devices(Bytes(), open);
  int came_back = 0;
  int too_little = 0;
  devices.on_release([&] { ++came_back; });
  devices.on_shortage([&] { ++too_little; });
  DeviceLedger& ledger = **devices.ledger("cuda:0");
  came_back = 0;
  { const auto charge = ledger.root().charge(mib(1)); }
  EXPECT_EQ(1, came_back);
  EXPECT_EQ(0, too_little);
  EXPECT_FALSE(ledger.root().charge(ledger.root().limit()).is_ok());
  EXPECT_EQ(1, too_little);
}

TEST(Devices, OnARealMachineAgreeWithItsDriver) {
  Devices devices{Bytes()};
  const auto ledger = devices.ledger("cuda:0");
  if (!ledger.is_ok()) GTEST_SKIP() << "SKIPPED: no GPU here (" << ledger.status().to_string() << ")";
  EXPECT_LE((*ledger)->root().limit(), (*ledger)->reading()->total);
}

}  // namespace
}  // namespace tonnage::memory
