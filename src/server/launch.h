// SPDX-License-Identifier: Apache-2.0
// Which program runs a model's worker, in which environment.
#pragma once

#include <string>

#include "model/spec.h"
#include "supervisor/process.h"

namespace tonnage::server {

// The environment is built from empty: nothing of ours leaks into code that a user wrote.
supervisor::LaunchCommand launch_command(const model::ModelSpec& spec, const std::string& directory);

}  // namespace tonnage::server
