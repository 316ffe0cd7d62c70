// SPDX-License-Identifier: Apache-2.0
// What a model with sizes gets for the keys about a length: docs/adr/0016.
#pragma once

#include "model/spec.h"

namespace tonnage::model {

// Nothing for a model without sizes. Otherwise max_length, positions_per_unit, the step of the cost
// table and the end of the short lane.
void derive_length(ModelSpec& spec);

}  // namespace tonnage::model
