// SPDX-License-Identifier: Apache-2.0
// The Open Inference Protocol (KServe V2) with Triton's binary tensor extension.
// Source: kserve.github.io/website "V2 dataplane", Triton's protocol/extension_binary_data.md.
#pragma once

#include <optional>
#include <string>

#include "codec/decoded.h"

namespace tonnage::codec::v2 {

// `json_length`: the header Inference-Header-Content-Length as sent (nothing: the whole body is
// JSON). 0 means a raw request. Malformed values are refused by parse_json_length.
Result<std::optional<std::size_t>> parse_json_length(std::string_view header, std::size_t body_bytes);
// `body` is not changed.
Result<Decoded> decode_infer(const model::ModelSpec& spec, std::string& body,
                             std::optional<std::size_t> json_length);
Result<EncodedBody> encode_infer(const model::ModelSpec& spec, const request::Request& request,
                                 const request::Answer& answer, const ReplyFormat& format);

// {"name","version","extensions"}; `model_control`: models come and go by call.
std::string server_metadata(std::string_view name, bool model_control = false);
std::string model_metadata(const model::ModelSpec& spec);

}  // namespace tonnage::codec::v2
