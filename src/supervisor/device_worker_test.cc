// SPDX-License-Identifier: Apache-2.0
// A worker whose model lies on a device, against fakes on a manual clock.
#include <gtest/gtest.h>

#include "supervisor/detail/device_share.h"
#include "testkit/fake_device.h"
#include "testkit/worker_fixture.h"

namespace tonnage::supervisor {
namespace {

using testkit::FakeBatch;
using testkit::FakeFault;

class DeviceWorker : public testkit::WorkerTest {
 protected:
  DeviceWorker() {
    factory_.model.device = "cuda:0";
    factory_.model.weights = mib(50);
    WorkerOptions options;
    options.weight_file = mib(50);
    make_worker_on(std::move(options));
  }
  ~DeviceWorker() override {
    worker_.reset();
    EXPECT_EQ(Bytes(), device_budget_.root().used());
  }
  void make_worker_on(WorkerOptions options) {
    options.name = "reviews/1/0";
    options.slot_bytes = kib(64);
    options.output_bytes = kib(64);
    worker_.emplace(std::move(options),
                    Worker::Host{loop_, factory_, account_, shared_, *log_,
                                 Worker::OnDevice{"cuda:0", device_budget_.root().child("worker"), driver_}},
                    nullptr);
  }
  Bytes on_device() { return device_budget_.root().used(); }

  testkit::FakeDeviceState device_{factory_};
  testkit::FakeDevice driver_{device_};
  memory::Budget device_budget_{"cuda:0", mib(900)};
};

TEST_F(DeviceWorker, IsChargedForLoadingOnBothLedgersBeforeThereIsAProcess) {
  worker_->start();
  EXPECT_EQ(mib(800), on_device()) << "the file twice, and a context";
  EXPECT_GE(budget_.root().used(), mib(100));
  loop_.advance(factory_.model.load_time);
  EXPECT_EQ(mib(350), on_device()) << "300 of context, 50 of weights";
}

TEST_F(DeviceWorker, DoesNotStartWhereTheDeviceLacksTheRoomAndSaysHowMuch) {
  auto charge = device_budget_.root().charge(mib(200));
  ASSERT_TRUE(charge.is_ok());
  worker_->start();
  EXPECT_EQ(WorkerState::kWaitingToStart, worker_->state());
  EXPECT_NE(std::string::npos, worker_->last_error().detail().find("loading on the device needs 800"))
      << worker_->last_error().detail();
  EXPECT_EQ(Bytes(), budget_.root().used()) << "nothing is held on the other ledger meanwhile";
  charge->release();
  loop_.advance(seconds(2));
  EXPECT_EQ(WorkerState::kReady, worker_->state());
}

TEST_F(DeviceWorker, TheLeaseFollowsReservedBytesAndFallsWithATrim) {
  make_ready();
  factory_.model.peak = [](const FakeBatch&) { return mib(200); };
  factory_.model.retained = mib(1);
  ASSERT_TRUE(run(mib(200)).is_ok());
  EXPECT_EQ(mib(350) + mib(220), on_device()) << "grant and a segment";
  loop_.advance(milliseconds(10));
  EXPECT_GE(worker_->lease(), mib(201));
  const Bytes leased = on_device();
  ASSERT_TRUE(run(mib(180)).is_ok());
  EXPECT_EQ(leased, on_device()) << "free inside the lease";
  loop_.advance(milliseconds(10));
  worker_->trim();
  loop_.advance(milliseconds(10));
  EXPECT_LE(worker_->lease(), mib(2));
}

TEST_F(DeviceWorker, AGrantIsOnTheDevicesLedgerAlone) {
  make_ready();
  const Bytes host = budget_.root().used();
  factory_.model.peak = [](const FakeBatch&) { return mib(300); };
  ASSERT_TRUE(run(mib(300)).is_ok());
  EXPECT_LE(budget_.root().used(), host + memory::kFirstSlack);
  EXPECT_FALSE(process().data_limit().has_value()) << "drivers map address space as they like";
  loop_.advance(milliseconds(10));
  EXPECT_EQ(Status::ok().code(), run(mib(530)).code()) << "900 less 350 and a segment";
  loop_.advance(milliseconds(10));
  EXPECT_EQ("over_budget", run(mib(600)).reason());
}

TEST_F(DeviceWorker, ABatchThatTheHostHasNoRoomForTakesNothingOfTheDevice) {
  make_ready();
  auto rest = budget_.root().charge(budget_.root().available());
  ASSERT_TRUE(rest.is_ok());
  const Bytes held = on_device();
  EXPECT_EQ("over_budget", run(mib(100)).reason());
  EXPECT_LE(on_device(), held + mib(1));
  rest->release();
  EXPECT_TRUE(run(mib(100)).is_ok());
  loop_.advance(milliseconds(10));
}

TEST_F(DeviceWorker, AContextThatGrewIsAFactFromTheNextSecondOn) {
  make_ready();
  factory_.model.context = mib(420);  // kernels were loaded
  loop_.advance(seconds(2));
  EXPECT_GE(on_device(), mib(470));
}

TEST_F(DeviceWorker, ABrokenDeviceGivesAllOfItBack) {
  make_ready();
  factory_.model.fault = [](const FakeBatch&) { return FakeFault::kSticky; };
  ASSERT_TRUE(run(mib(10)).is_ok());
  loop_.advance(milliseconds(10));
  EXPECT_EQ(RunFailure::kStickyDevice, failure());
  EXPECT_EQ(Bytes(), on_device());
}

}  // namespace
}  // namespace tonnage::supervisor
