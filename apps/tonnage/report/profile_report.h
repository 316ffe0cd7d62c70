// SPDX-License-Identifier: Apache-2.0
// What `tonnage profile` says of a profile: as text, as one JSON object, as one HTML page without network.
#pragma once

#include <string>

#include "server/inspect.h"

namespace tonnage::app {

std::string profile_text(const server::Inspection& seen);
std::string profile_json(const server::Inspection& seen);
std::string profile_html(const server::Inspection& seen);

}  // namespace tonnage::app
