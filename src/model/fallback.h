// SPDX-License-Identifier: Apache-2.0
// Whether the requests of one model may be run by another. A request was proven against its own model's
// spec, so the other one must take and give the same: tensors by order, name, datatype and dims, no
// narrower value range, no shorter rows, the same vocabulary.
// Threads: any. Fails with: invalid_argument/bad_config; not_found/no_model where one is missing.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "model/spec.h"

namespace tonnage::model {

// The spec of that name, or null.
using FindSpec = std::function<const ModelSpec*(std::string_view)>;

// `name` is in the chain of fallbacks of `spec`, as far as that can be found.
bool falls_back_to(const ModelSpec& spec, std::string_view name, const FindSpec& find);

// Follows `spec` and its fallbacks: each one exists, agrees with the one before, and none comes twice.
Status check_fallbacks(const ModelSpec& spec, const FindSpec& find);

}  // namespace tonnage::model
