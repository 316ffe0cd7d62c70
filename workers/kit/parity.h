// SPDX-License-Identifier: Apache-2.0
// The gate behind every load: held-out rows are run, each alone and the shorter ones as one padded batch,
// and the answers must have the direction of those that the module gave in fp32.
//
// Promises: judged are all FP32 outputs, by the least cosine of a row (outputs of one value per row: all
// rows together) and by the largest absolute difference. NaN never passes.
// Threads: the caller's. Fails with: parity (what was measured, where, what is allowed), bad_held_out.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "kit/held_out.h"
#include "kit/runtime.h"

namespace tonnage::kit {

inline constexpr double kParityMinCosine = 0.999;

struct Parity {
  double min_cosine = 1;
  double max_difference = 0;
  std::string worst_at{};  // "output 'scores' of row 3 (length 17), alone"
};

struct ParityRule {
  double min_cosine = kParityMinCosine;
  Bytes grant = Bytes::max();  // of each run
};

// From the options of a LoadDoc (`parity_min_cosine`) and from what its load limit leaves above `live`.
Result<ParityRule> parity_rule(const wire::LoadDoc& doc, Bytes live);

// What the rows show, whether it passes or not.
Result<Parity> measure_parity(Runtime& runtime, const HeldOut& held_out, Bytes grant);
Result<Parity> prove_parity(Runtime& runtime, const HeldOut& held_out, const ParityRule& rule);

// Cosine of two vectors of one length; 1 where both are zero, 0 where one is.
double cosine(std::span<const float> got, std::span<const float> want);

}  // namespace tonnage::kit
