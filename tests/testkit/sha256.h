// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for comparing with golden hashes; not for secrets.
#pragma once

#include <string>

#include "base/spans.h"

namespace tonnage::testkit {

std::string sha256_hex(ByteView bytes);  // 64 lower-case digits

}  // namespace tonnage::testkit
