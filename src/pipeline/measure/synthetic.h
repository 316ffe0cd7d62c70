// SPDX-License-Identifier: Apache-2.0
// Requests made of nothing: inputs inside the spec's ranges, for warm-up and profiling.
#pragma once

#include <cstdint>

#include "request/request.h"

namespace tonnage::pipeline {

// `rows` rows of `length` (or about it, where lengths are products of sizes); other seeds give other values.
request::Request synthetic_request(const model::ModelHandle& spec, std::uint32_t rows, std::uint32_t length,
                                   std::uint64_t seed);

}  // namespace tonnage::pipeline
