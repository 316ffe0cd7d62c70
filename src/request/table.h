// SPDX-License-Identifier: Apache-2.0
// Table: the requests that are inside the server, by id. A stale id finds nothing, so cancellation is
// removal and nobody holds a pointer across events. Threads: the loop. Owns: the requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "request/request.h"

namespace tonnage::request {

class Table {
 public:
  RequestId add(Request request);
  Request* find(RequestId id);
  // Takes the request out; later lookups of `id` find nothing.
  std::optional<Request> remove(RequestId id);
  // Of all requests that are in the table.
  std::vector<RequestId> ids() const;
  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint32_t generation = 0;
    std::unique_ptr<Request> request;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace tonnage::request
