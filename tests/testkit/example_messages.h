// SPDX-License-Identifier: Apache-2.0
// One message of every kind, with every field set; for tests.
#pragma once

#include <utility>
#include <vector>

#include "wire/messages.h"

namespace tonnage::testkit {

inline tensor::Shape shape_of(std::vector<std::int64_t> dims) { return tensor::Shape::make(dims).value(); }

inline wire::Run example_run() {
  return {.slot = 1,
          .rows = 3,
          .length = 5,
          .grant = mib(2),
          .inputs = {{tensor::DataType::kInt64, shape_of({3, 5}), 0, 120},
                     {tensor::DataType::kFp32, shape_of({3, 1, 5}), 128, 60}}};
}

inline std::vector<wire::Message> example_messages() {
  const wire::Done done{.peak = kib(3),
                        .live = kib(1),
                        .resident = mib(9),
                        .execution = microseconds(17),
                        .outputs = {{tensor::DataType::kFp32, shape_of({3, 2}), 64, 24}}};
  std::vector<wire::Message> all;
  std::uint64_t ticket = 0;
  const auto add = [&](wire::Body body) { all.push_back({.ticket = ticket++, .body = std::move(body)}); };
  add(wire::Hello{});
  add(wire::Load{.slot_bytes = 4096, .output_bytes = 8192});
  add(wire::Loaded{.weights = mib(90), .live = mib(91)});
  add(wire::Failed{.reason = "missing_weights", .text = "no file w.bin"});
  add(example_run());
  add(done);
  add(wire::Need{.output_bytes = kib(70)});
  add(wire::Region{.output_bytes = 70 * 1024});
  add(wire::Discard{});
  add(wire::Error{.kind = wire::ErrorKind::kOverGrant,
                  .peak = kib(5),
                  .live = kib(2),
                  .needed = kib(9),
                  .text = "refused"});
  add(wire::Trim{});
  add(wire::Trimmed{.live = kib(1), .resident = mib(3)});
  add(wire::Stat{});
  add(wire::Stats{.live = kib(1),
                  .resident = mib(3),
                  .batches = 12,
                  .libraries = mib(2),
                  .heap = kib(8),
                  .heap_used = kib(7)});
  add(wire::Stop{});
  return all;
}

}  // namespace tonnage::testkit
