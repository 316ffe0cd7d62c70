// SPDX-License-Identifier: Apache-2.0
// The opening of a session: hello, then load with its document and its segments.
//
// Promises: what open_session returns was proven (sealed, as large as said, a document that parses).
// refuse() says to the front what the protocol allows to say, logs one line, and gives the exit status.
// Threads: one. Fails with: wrong_version, bad_message, bad_segment, bad_load_doc, peer_closed.
#pragma once

#include <array>
#include <optional>

#include "base/status.h"
#include "wire/channel.h"
#include "wire/load_doc.h"
#include "wire/segment.h"

namespace tonnage::kit {

inline constexpr int kStopped = 0;
inline constexpr int kProtocolError = 2;
inline constexpr int kLoadFailed = 3;
inline constexpr int kNotStartedByTonnage = 64;

struct Opening {
  wire::LoadDoc doc{};
  std::array<wire::Segment, wire::kInputSlots> slots{};  // read-only
  wire::Segment region{};
};

// The descriptor that TONNAGE_WIRE_FD names; prints what is wrong when there is none.
std::optional<wire::Channel> channel_from_environment();
Result<Opening> open_session(wire::Channel& channel);
// What ended the session before or after it opened; a front that is gone is an ordinary end.
int refuse(wire::Channel& channel, const Status& status);

Status unexpected(const wire::Body& body, std::string_view awaited);

}  // namespace tonnage::kit
