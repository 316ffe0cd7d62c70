// SPDX-License-Identifier: Apache-2.0
// Asks the server which model there is and what it takes.
// Fails with: connect_failed, not_found/no_model, invalid_argument/which_model, bad_metadata.
#pragma once

#include <string>

#include "base/status.h"
#include "load/client.h"
#include "load/model_info.h"

namespace tonnage::load {

// `model` empty: the only one that the server names.
Result<ModelInfo> discover(const Endpoint& endpoint, const std::string& model);

}  // namespace tonnage::load
