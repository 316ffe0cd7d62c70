// SPDX-License-Identifier: Apache-2.0
// LoneModel: one model in a worker of its own, warmed up, with nothing that listens. What `inspect` and
// `profile` look at.
//
// Promises: start() blocks until the model is ready and its worker has said what its memory consists of;
// a model that cannot be loaded is an error with the worker's reason. Nothing is left after the destructor.
// Threads: the caller's, which is the loop meanwhile. Fails with: what loading or warming up fails with.
#pragma once

#include <functional>
#include <memory>

#include "base/loop.h"
#include "pipeline/served_model.h"
#include "server/server.h"

namespace tonnage::server {

class LoneModel {
 public:
  // `forget`: what the state directory knows of its costs is not used, and replaced.
  // `progress` is called now and then with 0 … 1.
  static Result<LoneModel> start(const ServerOptions& options, bool forget,
                                 const std::function<void(double)>& progress);
  LoneModel(LoneModel&&) noexcept;
  LoneModel& operator=(LoneModel&&) noexcept;
  ~LoneModel();

  const pipeline::ServedModel& model() const;
  supervisor::Worker& worker();
  Bytes budget() const;
  Bytes shared() const;  // memory between this process and the worker
  Loop& loop();
  // Runs the loop until stop() is called by something that runs on it.
  void run();
  void stop();

 private:
  struct State;
  explicit LoneModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::server
