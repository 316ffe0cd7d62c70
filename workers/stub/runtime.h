// SPDX-License-Identifier: Apache-2.0
// StubRuntime: a Runtime without an ML runtime, whose every behaviour, good and bad, is an option.
// Threads: one.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "kit/runtime.h"
#include "stub/allocator.h"
#include "stub/execution_log.h"
#include "stub/options.h"

namespace tonnage::stub {

class StubRuntime final : public kit::Runtime {
 public:
  Result<kit::Loaded> load(const wire::LoadDoc& doc) override;
  kit::RunResult run(const kit::RunView& view) override;
  void release_outputs() override { outputs_.clear(); }
  void trim() override;
  Bytes live() const override { return memory_.live(); }
  std::optional<Bytes> reserved() const override;

 private:
  kit::RunResult execute(const kit::RunView& view);
  void execute_rows(const kit::RunView& view);
  void fail_row(const kit::RunView& view);
  Bytes cost_of(const kit::RunView& view) const;
  void keep_what_leaks(const kit::RunView& view);

  CountingAllocator memory_;  // first: the blocks below return to it
  Options options_;
  ExecutionLog log_;
  Block weights_;
  std::vector<Block> leaked_;
  std::vector<Block> cache_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> cached_shapes_;
  std::vector<Block> outputs_;
  std::uint64_t batches_ = 0;
  Bytes reserved_;  // on the device that is pretended, since the last trim
  bool is_device_broken_ = false;
};

}  // namespace tonnage::stub
