// SPDX-License-Identifier: Apache-2.0
// From a request target to what it asks for. Pure. Query strings are ignored; model names are
// percent-decoded after the path was cut, so that a name may hold a slash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/service.h"
#include "base/status.h"

namespace tonnage::http {

enum class Endpoint : std::uint8_t {
  kUnknown,
  kServerMetadata,  // /v2
  kLive,            // /v2/health/live
  kReady,           // /v2/health/ready
  kModels,          // /v2/models
  kModelMetadata,   // /v2/models/M[/versions/V]
  kModelReady,      // …/ready
  kInfer,           // …/infer
  kStatus,          // /v1/tonnage/status
  kPing,            // /ping
  kInvocations,     // /invocations
  kMetrics,         // /metrics
  kAdmin,           // /v2/repository/…: the table in target.cc
};

struct Target {
  Endpoint endpoint = Endpoint::kUnknown;
  api::AdminKind admin = api::AdminKind::kIndex;  // of kAdmin: what is asked for
  std::string path;                               // without query; for messages
  std::string model;
  std::string version;
};

// Error: invalid_argument/bad_target (a broken percent-encoding, or no path at all).
Result<Target> parse_target(std::string_view target);

bool takes_body(Endpoint endpoint);  // POST; the others GET and HEAD
std::string_view allowed_methods(Endpoint endpoint);

}  // namespace tonnage::http
