// SPDX-License-Identifier: Apache-2.0
// TensorMemory: where a model's tensors are counted and a batch is held to its grant: the host
// (memory_meter.h), or a device.
//
// Promises:
//  1. Between begin() and end() what would take a batch above its grant is refused; the answers below are
//     about that batch until the next begin().
//  2. Why a batch failed is told by what was counted, never by an exception's type or text, which do not
//     survive every runtime (TorchScript's interpreter repacks them).
// Threads: the worker's one.
#pragma once

#include "base/bytes.h"

namespace tonnage::kit {

class TensorMemory {
 public:
  virtual void begin(Bytes grant) = 0;
  virtual void end() = 0;

  virtual Bytes live() const = 0;
  // Highest live bytes since begin(), minus live bytes then.
  virtual Bytes peak() const = 0;
  virtual bool over_grant() const = 0;
  // What the largest refused allocation would have made of the peak; zero without over_grant().
  virtual Bytes needed() const = 0;
  // Memory that the grant allowed was not there.
  virtual bool pressure() const = 0;
  // It works no more, in this process: only another one helps. Asked after a failure.
  virtual bool is_broken() const { return false; }

 protected:
  TensorMemory() = default;
  ~TensorMemory() = default;
};

}  // namespace tonnage::kit
