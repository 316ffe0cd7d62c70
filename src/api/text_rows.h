// SPDX-License-Identifier: Apache-2.0
// Token ids → the id input of a text model. The mask is generated at gather.
#pragma once

#include <vector>

#include "base/status.h"
#include "request/request.h"
#include "text/tokenizer.h"

namespace tonnage::api {

// A text that was cut into chunks is several rows, which the request remembers.
// The ids go to the first integer input with a free dim; further such inputs (token types) are zero.
// Error: internal/no_id_input when the model has none.
Status fill_text_rows(const model::ModelSpec& spec, const std::vector<text::Tokens>& tokens,
                      request::Request& request);

}  // namespace tonnage::api
