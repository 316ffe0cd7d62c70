// SPDX-License-Identifier: Apache-2.0
// AsioLoop: base/loop.h on a boost::asio::io_context, the one real loop of the process.
//
// Watched descriptors are set to non-blocking by asio; they stay their owner's and are never closed here.
// Threads: as base/loop.h; the io_context is run by exactly one thread. Owns: nothing of the caller's.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/loop.h"

namespace tonnage::server {

class AsioLoop final : public Loop {
 public:
  // `io` must outlive the loop and every Timer and Watch.
  explicit AsioLoop(boost::asio::io_context& io) : io_(io) {}

  TimePoint now() const override;
  void post(UniqueFunction<void()> fn) override;
  [[nodiscard]] Timer call_at(TimePoint when, UniqueFunction<void()> fn) override;
  [[nodiscard]] Watch watch_readable(int fd, UniqueFunction<void()> fn) override;

 private:
  boost::asio::io_context& io_;
};

}  // namespace tonnage::server
