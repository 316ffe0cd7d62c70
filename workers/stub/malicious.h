// SPDX-License-Identifier: Apache-2.0
// The model `malicious`: a worker that breaks the protocol on purpose, in the one way that its option
// `mode` names (README.md lists them). The front must outlive every one of them.
// Threads: one; `racing_lengths` has a second that writes to the output region.
#pragma once

#include <string>

#include "kit/opening.h"

namespace tonnage::stub {

// From `loaded` to the end; the exit status of the program.
int misbehave(const std::string& mode, wire::Channel& channel, kit::Opening& opening);

}  // namespace tonnage::stub
