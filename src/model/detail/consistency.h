// SPDX-License-Identifier: Apache-2.0
// What has to agree inside a ModelSpec, whoever said it: model.toml, the model file or both.
#pragma once

#include "base/status.h"
#include "model/spec.h"

namespace tonnage::model {

// `where` opens the messages ("models/reviews/model.toml"). Tensors that are not known yet (empty
// lists) are not checked. Fails with: invalid_argument/bad_config.
Status check_consistency(const ModelSpec& spec, const std::string& where);

}  // namespace tonnage::model
