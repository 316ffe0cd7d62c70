// SPDX-License-Identifier: Apache-2.0
// Words that several subcommands print.
#pragma once

#include <string_view>

#include "cost/cost_model.h"

namespace tonnage::app {

inline std::string_view determinism_name(cost::Determinism determinism) {
  switch (determinism) {
    case cost::Determinism::kDeterministic: return "deterministic";
    case cost::Determinism::kValueDependent: return "value-dependent";
    case cost::Determinism::kUnknown: break;
  }
  return "unknown";
}

}  // namespace tonnage::app
