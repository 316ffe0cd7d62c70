// SPDX-License-Identifier: Apache-2.0
// What the tests of supervisor::Worker share: a budget, a fake process, a manual clock.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "supervisor/worker.h"
#include "testkit/fake_process.h"
#include "testkit/manual_loop.h"

namespace tonnage::testkit {

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() { make_worker({}); }
  ~WorkerTest() override {
    worker_.reset();
    EXPECT_EQ(Bytes(), budget_.root().used()) << "something was not given back";
  }
  WorkerTest(const WorkerTest&) = delete;
  WorkerTest& operator=(const WorkerTest&) = delete;

  void make_worker(supervisor::WorkerOptions options) {
    options.name = "reviews/1/0";
    if (options.slot_bytes == Bytes()) options.slot_bytes = kib(64);
    if (options.output_bytes == Bytes()) options.output_bytes = kib(64);
    worker_.reset();
    worker_.emplace(std::move(options), supervisor::Worker::Host{loop_, factory_, account_, shared_, *log_},
                    [this] {
                      ++changes_;
                      if (on_change_) on_change_();
                    });
  }
  void make_ready() {
    worker_->start();
    loop_.advance(factory_.model.load_time);
    ASSERT_EQ(supervisor::WorkerState::kReady, worker_->state()) << worker_->last_error().to_string();
  }
  // Starts a batch; its outcome lands in outcomes_.
  Status run(Bytes grant = mib(1), Duration watchdog = seconds(5)) {
    return worker_->run({0, 4, 8, grant, watchdog, {}},
                        [this](supervisor::RunOutcome outcome) { take(std::move(outcome)); });
  }
  void take(supervisor::RunOutcome outcome) {
    ++answers_;
    failure_ = std::nullopt;
    if (auto* failed = std::get_if<supervisor::RunFailed>(&outcome)) failure_ = std::move(*failed);
    if (on_answer_) on_answer_();
  }
  testkit::FakeProcess& process() { return factory_.only(); }
  supervisor::RunFailure failure() const { return failure_.value().failure; }

  testkit::ManualLoop loop_;
  testkit::FakeFactory factory_{loop_};
  std::unique_ptr<telemetry::Log> log_ = telemetry::make_null_log();
  memory::Budget budget_{"host", mib(400)};
  memory::Account& account_ = budget_.root().child("worker");
  memory::Account& shared_ = budget_.root().child("shared");
  std::function<void()> on_change_;
  std::function<void()> on_answer_;
  std::optional<supervisor::Worker> worker_;
  int changes_ = 0;
  int answers_ = 0;
  std::optional<supervisor::RunFailed> failure_;  // of the last answer; none where it was done
};

}  // namespace tonnage::testkit
