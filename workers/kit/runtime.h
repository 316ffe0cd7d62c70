// SPDX-License-Identifier: Apache-2.0
// Runtime: what a worker program implements around its ML runtime. kit::serve does the rest: the wire,
// the checks of offsets and shapes, shared memory, and the copying of outputs.
//
// Promises of the kit to a runtime:
//  1. load() is called once, first. run(), release_outputs(), trim() and live() come only after it
//     succeeded, one at a time, all from the thread that called serve().
//  2. The tensors of a run lie inside shared memory, are aligned to 64, have exactly the bytes of
//     their shape, fit the LoadDoc (number, type, rank, fixed dims, rows), and their values lie in the
//     ranges that LoadDoc and LoadedDoc name. They are mapped READ-ONLY: a runtime that changes inputs
//     in place copies them first.
//  3. release_outputs() follows every run(), also a failed one.
// Promises of a runtime to the kit:
//  4. Outputs stay valid until release_outputs().
//  5. A run never holds more than `grant` tensor bytes above live(), or ends with kOverGrant, known by
//     the allocator's own flag and not by an exception's type or text.
//  6. An exception that does escape is answered as kModelError, std::bad_alloc as kPressure.
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "kit/held_out.h"
#include "wire/load_doc.h"
#include "wire/messages.h"

namespace tonnage::kit {

struct Loaded {
  wire::LoadedDoc doc{};
  Bytes weights{};  // as counted; zero where the allocator does not see them
  // Where the front names no held-out rows, a runtime that converted the weights gives some with the
  // answers from before: the kit proves them (parity.h).
  std::optional<HeldOut> own_rows{};
};

struct RunView {
  std::span<const Tensor> inputs;  // in the order of LoadDoc::inputs
  std::uint32_t rows = 0;
  std::uint32_t length = 0;  // padded length; 0 where the model has no free dim
  Bytes grant{};
};

struct RunOutputs {
  std::vector<Tensor> outputs{};  // in the order of LoadedDoc::outputs
  Bytes peak{};                   // highest live bytes during the run minus live bytes before it
};
struct RunError {
  wire::ErrorKind kind = wire::ErrorKind::kModelError;
  Bytes peak{};
  Bytes needed{};  // kOverGrant: peak plus the allocation that was refused
  std::string text{};
};
using RunResult = std::variant<RunOutputs, RunError>;

class Runtime {
 public:
  virtual ~Runtime() = default;
  // The reason of an error becomes that of `failed`. doc.load_limit bounds the tensor bytes meanwhile.
  virtual Result<Loaded> load(const wire::LoadDoc& doc) = 0;
  virtual RunResult run(const RunView& view) = 0;
  virtual void release_outputs() = 0;
  // Releases what the runtime caches; the kit then purges malloc.
  virtual void trim() = 0;
  // Live tensor bytes now: weights, and whatever the model keeps.
  virtual Bytes live() const = 0;
  // Of a model on a device: what its allocator has taken there, cached bytes included. The kit tells it
  // instead of the resident bytes of the process.
  virtual std::optional<Bytes> reserved() const { return std::nullopt; }
};

}  // namespace tonnage::kit
