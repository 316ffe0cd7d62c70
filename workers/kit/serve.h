// SPDX-License-Identifier: Apache-2.0
// serve(): the whole life of a worker program on the wire (docs/wire.md).
//
// Promises:
//  1. Blocks in hello → load → (run | trim | stat)* → stop, and returns the exit status: kStopped also
//     when the front is gone, kProtocolError when the front broke the protocol, kLoadFailed.
//  2. Every run is ended by exactly one done or error.
//  3. Believes nothing: offsets, sizes and shapes are proven against the segment's real size.
// Threads: the caller's. Owns: the descriptor, the mapped segments.
#pragma once

#include "kit/opening.h"
#include "kit/runtime.h"

namespace tonnage::kit {

int serve(wire::Channel channel, Runtime& runtime);
// For a program that looked at the opening first.
int serve(wire::Channel channel, Opening opening, Runtime& runtime);
// serve() on the descriptor that TONNAGE_WIRE_FD names, as main() does.
int serve_from_environment(Runtime& runtime);

}  // namespace tonnage::kit
