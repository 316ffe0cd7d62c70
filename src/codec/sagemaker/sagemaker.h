// SPDX-License-Identifier: Apache-2.0
// Bodies of SageMaker's /invocations: application/json ({"instances": […]}, a nested array, or a V2
// request object), text/csv, application/jsonlines, text/plain (one row per body).
//
// Promises: media types are compared without parameters and case; CSV cells that are not numbers are
// refused with row and column; output has one record per input record, in order.
#pragma once

#include <string>
#include <string_view>

#include "codec/decoded.h"

namespace tonnage::codec::sagemaker {

// Fails with: unsupported_media/content_type (415), not_acceptable/accept (406).
Result<Decoded> decode_invocation(const model::ModelSpec& spec, std::string& body,
                                  std::string_view content_type, std::string_view accept);
Result<EncodedBody> encode_invocation(const model::ModelSpec& spec, const request::Request& request,
                                      const request::Answer& answer, const ReplyFormat& format);

}  // namespace tonnage::codec::sagemaker
