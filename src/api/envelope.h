// SPDX-License-Identifier: Apache-2.0
// How much one request may hold in the front: pure arithmetic that saturates.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/bytes.h"
#include "request/request.h"

namespace tonnage::api {

// While a body is being decoded: the body and its widest decoded form. `json_length`: of a body with
// binary tensors behind the JSON; nothing: all of it is JSON or text.
Bytes decoding_bytes(std::size_t body, std::optional<std::size_t> json_length);
// While texts become rows of ids: the texts, their ids and the tensors made of them.
Bytes tokenising_bytes(const model::ModelSpec& spec, std::span<const std::string> texts);
// From then on: the tensors, the outputs by spec × rows, and the reply's text.
Bytes envelope_bytes(const request::Request& request);

}  // namespace tonnage::api
