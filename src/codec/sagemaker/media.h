// SPDX-License-Identifier: Apache-2.0
// Media types of /invocations: what a body is, and in which form the reply is wanted.
//
// Promises: compared without case and without parameters (RFC 9110, 8.3.1); Accept is weighed by its
// q-values, the most specific range deciding for a type (12.5.1); equal weights go to the request's own form.
// Fails with: unsupported_media/content_type, not_acceptable/accept; both list what is possible.
#pragma once

#include <string_view>

#include "base/status.h"
#include "codec/decoded.h"

namespace tonnage::codec::sagemaker {

// kJson, kJsonLines, kCsv or, where the model takes text, kText. An empty header means JSON.
Result<BodyForm> body_form(std::string_view content_type, bool takes_text);
// kJson, kJsonLines or kCsv. A missing Accept means the form of the request (JSON for plain text).
Result<BodyForm> reply_form(std::string_view accept, BodyForm request);
// Of a reply in that form.
std::string_view media_type(BodyForm form);

}  // namespace tonnage::codec::sagemaker
