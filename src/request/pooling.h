// SPDX-License-Identifier: Apache-2.0
// pool_chunks: the outputs of the chunks of each text → the outputs of the text.
//
// Promises: one row per text, in the client's order; mean weighs each chunk by its length (its tokens,
// special ones included); a text of one row keeps its bits.
// Threads: pure. Precondition: outputs of request.rows rows of FP32 or FP64 (model/spec.h: chunk).
#pragma once

#include "base/status.h"
#include "request/assembly.h"
#include "request/request.h"

namespace tonnage::request {

Result<OutputTensor> pool_chunks(const Request& request, const OutputTensor& chunks);

}  // namespace tonnage::request
