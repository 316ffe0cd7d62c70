// SPDX-License-Identifier: Apache-2.0
// SmallestBudget: what --memory must be at least for a model to be served, one row at a time.
// Threads: any. Pure.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tonnage::server {

struct SmallestBudget {
  Bytes front;    // of the server itself, about
  Bytes loading;  // taken before there is a process; given back when the model is loaded
  Bytes weights;
  Bytes base;
  Bytes shared;              // memory between front and worker, while loading and after
  Bytes row;                 // lease for one row of the longest length
  Bytes envelope;            // of that row's request and answer
  std::uint32_t length = 0;  // that one; 0: the model has no length

  Bytes total() const;
  // "75.2 MiB: front 9.1 MiB, …"
  std::string to_string() const;
};

// The lease of a fresh worker for a grant, `slack` being the most that batches took on top.
Bytes lease_for(Bytes grant, Bytes slack, double charged_per_byte);

}  // namespace tonnage::server
