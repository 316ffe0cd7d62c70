// SPDX-License-Identifier: Apache-2.0
#include "kit/failure.h"

#include <fmt/format.h>

namespace tonnage::kit {

RunError run_failure(const MemoryMeter& meter, const Status& said) {
  RunError error{.kind = wire::ErrorKind::kModelError, .peak = meter.peak(), .text = said.detail()};
  if (said.reason() == "bad_input") error.kind = wire::ErrorKind::kBadRequest;
  if (said.reason() == "bad_output") error.kind = wire::ErrorKind::kBadOutput;
  if (meter.pressure()) error.kind = wire::ErrorKind::kPressure;
  if (meter.over_grant()) {
    error.kind = wire::ErrorKind::kOverGrant;
    error.needed = meter.needed();
  }
  return error;
}

Status load_failure(const MemoryMeter& meter, const wire::LoadDoc& doc, const Status& said) {
  if (meter.over_grant()) {
    return {Code::kOverloaded, "over_grant",
            fmt::format("loading needs {}, allowed are {}", format_bytes(meter.needed()),
                        format_bytes(doc.load_limit))};
  }
  if (meter.pressure()) return {Code::kUnavailable, "pressure", "the kernel refused memory while loading"};
  return said;
}

}  // namespace tonnage::kit
