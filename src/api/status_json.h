// SPDX-License-Identifier: Apache-2.0
// The server's state for people and programs, as one JSON document.
#pragma once

#include <string>

#include "memory/budget.h"
#include "pipeline/pipeline.h"

namespace tonnage::api {

std::string status_json(const memory::Account& root, const pipeline::Pipeline& pipeline, bool ready);

}  // namespace tonnage::api
