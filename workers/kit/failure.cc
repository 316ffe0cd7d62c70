// SPDX-License-Identifier: Apache-2.0
#include "kit/failure.h"

#include <fmt/format.h>

namespace tonnage::kit {

RunError run_failure(const TensorMemory& memory, const Status& said) {
  RunError error{.kind = wire::ErrorKind::kModelError, .peak = memory.peak(), .text = said.detail()};
  if (said.reason() == "bad_input") error.kind = wire::ErrorKind::kBadRequest;
  if (said.reason() == "bad_output") error.kind = wire::ErrorKind::kBadOutput;
  if (memory.is_broken()) {
    error.kind = wire::ErrorKind::kStickyDevice;
    return error;
  }
  if (memory.pressure()) error.kind = wire::ErrorKind::kPressure;
  if (memory.over_grant()) {
    error.kind = wire::ErrorKind::kOverGrant;
    error.needed = memory.needed();
  }
  return error;
}

Status load_failure(const TensorMemory& memory, const wire::LoadDoc& doc, const Status& said) {
  if (memory.is_broken()) return {Code::kUnavailable, "sticky_device", said.detail()};
  if (memory.over_grant()) {
    return {Code::kOverloaded, "over_grant",
            fmt::format("loading needs {}, allowed are {}", format_bytes(memory.needed()),
                        format_bytes(doc.load_limit))};
  }
  if (memory.pressure()) return {Code::kUnavailable, "pressure", "memory was refused while loading"};
  return said;
}

}  // namespace tonnage::kit
