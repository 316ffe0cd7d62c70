// SPDX-License-Identifier: Apache-2.0
// BlockingFront: starts a worker program and talks to it alone, one question at a time, waiting for each
// answer. For tests and benches of workers; the server's own front is `supervisor`.
//
// Promises: the program gets exactly the given environment plus TONNAGE_WIRE_FD=3; it is stopped and
// reaped when this object goes away. `need` is answered by a new region.
// Threads: one. Owns: the process, the segments. Fails with: what the channel says, failed_to_load
// (detail: the worker's reason and text), bad_message.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "wire/load_doc.h"
#include "wire/messages.h"

namespace tonnage::kit {

struct BlockingFrontOptions {
  std::string program;
  std::vector<std::pair<std::string, std::string>> environment{};
  wire::LoadDoc doc{};
  Bytes slot = mib(16);
  Bytes region = mib(16);
};

using FrontOutcome = std::variant<wire::Done, wire::Error>;

class BlockingFront {
 public:
  static Result<BlockingFront> start(const BlockingFrontOptions& options);
  BlockingFront(BlockingFront&&) noexcept;
  BlockingFront& operator=(BlockingFront&&) noexcept;
  ~BlockingFront();

  pid_t pid() const;
  const wire::Loaded& loaded() const;
  const wire::LoadedDoc& loaded_doc() const;

  // Where inputs are written to; layouts of a run point into it.
  MutableByteView slot();
  Result<FrontOutcome> run(const wire::Run& run);
  // Copies output `layout` of the last run out.
  Result<std::vector<std::byte>> output(const wire::TensorLayout& layout) const;
  Result<wire::Trimmed> trim();
  Result<wire::Stats> stat();

 private:
  struct State;
  explicit BlockingFront(std::unique_ptr<State> state);
  Result<wire::Message> ask(wire::Body body, std::uint64_t ticket);
  std::unique_ptr<State> state_;
};

}  // namespace tonnage::kit
