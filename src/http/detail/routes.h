// SPDX-License-Identifier: Apache-2.0
// Everything that is decided from a request's head alone: refusals, and the answers that need no body.
// Pure but for what the Service says.
#pragma once

#include <optional>

#include "api/service.h"
#include "http/detail/reply.h"
#include "http/detail/request_head.h"
#include "http/detail/target.h"
#include "http/server.h"

namespace tonnage::http {

// A refusal before any of the body is read, or nothing. For endpoints that take a body, the declared
// length was compared with what is allowed.
std::optional<OutgoingReply> refuse_early(const RequestHead& head, const Target& target,
                                          const HttpOptions& options, api::Service& service);
// For endpoints that take no body.
OutgoingReply answer_now(const Target& target, const HttpOptions& options, const api::Service& service);
// Too large for one request, whatever else is going on. `bytes` of the body are known or declared.
Status check_body_size(std::uint64_t bytes, api::Service& service);

}  // namespace tonnage::http
