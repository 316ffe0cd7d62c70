// SPDX-License-Identifier: Apache-2.0
// Which program runs a model's worker, in which environment.
#pragma once

#include <cstdint>
#include <string>

#include "model/spec.h"
#include "supervisor/process.h"

namespace tonnage::server {

struct Programs {
  std::string directory;    // of the worker programs
  std::string python;       // interpreter of native workers; empty: their launcher looks for one
  std::uint32_t cores = 1;  // threads of a model that asks for all
};

// The environment is built from empty: nothing of ours leaks into code that a user wrote.
supervisor::LaunchCommand launch_command(const model::ModelSpec& spec, const Programs& programs);

}  // namespace tonnage::server
