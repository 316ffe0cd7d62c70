// SPDX-License-Identifier: Apache-2.0
// A raw request (Inference-Header-Content-Length: 0): the body is the only input of the model, or one
// text of a tokenizer model; the outputs are answered as binary.
#pragma once

#include <string_view>

#include "base/status.h"
#include "codec/decoded.h"

namespace tonnage::codec::v2 {

Result<Decoded> decode_raw(const model::ModelSpec& spec, std::string_view body);

}  // namespace tonnage::codec::v2
