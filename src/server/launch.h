// SPDX-License-Identifier: Apache-2.0
// Which program runs a model's worker, in which environment.
#pragma once

#include <string>

#include "model/spec.h"
#include "server/server.h"
#include "supervisor/process.h"

namespace tonnage::server {

// --worker-dir, or the folder of this program.
std::string worker_directory(const ServerOptions& options);
// --state, or the place where this user's state belongs.
std::string state_directory(const ServerOptions& options);
// The environment is built from empty: nothing of ours leaks into code that a user wrote.
supervisor::LaunchCommand launch_command(const model::ModelSpec& spec, const std::string& directory);

}  // namespace tonnage::server
