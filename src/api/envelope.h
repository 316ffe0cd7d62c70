// SPDX-License-Identifier: Apache-2.0
// How much one request may hold in the front: pure arithmetic that saturates.
#pragma once

#include "base/bytes.h"
#include "request/request.h"

namespace tonnage::api {

// While a body is being decoded: the body, the parser's index and the widest decoded form.
Bytes decoding_bytes(std::size_t body);
// From then on: the tensors, the outputs by spec × rows, and the reply's text.
Bytes envelope_bytes(const request::Request& request);

}  // namespace tonnage::api
