// SPDX-License-Identifier: Apache-2.0
// OpenRequests: every request that was admitted and not yet answered, with its deadline.
//
// Promises: each request is answered once, at the latest when its deadline passes, whether it waits or
// runs; after that its id finds nothing. `on_closed` runs after each answer, so that whoever holds
// rows of the request can drop them.
// Threads: the loop. Owns: the requests and one timer.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <utility>

#include "base/loop.h"
#include "request/table.h"

namespace tonnage::pipeline {

class OpenRequests {
 public:
  using OnClosed = std::function<void(request::RequestId, const request::Request&)>;

  OpenRequests(Loop& loop, OnClosed on_closed) : loop_(loop), on_closed_(std::move(on_closed)) {}

  // Makes the assembly. The deadline is armed.
  request::RequestId open(request::Request request);
  request::Request* find(request::RequestId id) { return table_.find(id); }
  // One row's outputs, in the order of the spec; answers the request with its last row.
  void put_row(request::RequestId id, std::uint32_t row, std::span<const request::RowOutput> outputs);
  // Answers the whole request with an error; unknown ids are ignored.
  void fail(request::RequestId id, const Status& status);
  // Ends every open request (shutdown).
  void fail_all(const Status& status);
  std::size_t size() const { return table_.size(); }

 private:
  void close(request::RequestId id, Result<request::Answer> answer);
  void arm();
  void expire();

  using Entry = std::pair<TimePoint, std::uint64_t>;
  static Entry entry(TimePoint deadline, request::RequestId id) {
    return {deadline, (std::uint64_t{id.generation} << 32U) | id.index};
  }

  Loop& loop_;
  OnClosed on_closed_;
  request::Table table_;
  std::set<Entry> deadlines_;
  Loop::Timer timer_;
  TimePoint armed_for_ = kNever;
};

}  // namespace tonnage::pipeline
