// SPDX-License-Identifier: Apache-2.0
// What a decoder makes of a body, and what an encoder needs to know to answer in the same dialect.
// Shared by the dialects in this room (v2/, sagemaker/).
//
// Promises of every decoder here: bounded before anything is allocated (JSON depth 64, rank 8, element
// counts checked against carried data); a Decoded request satisfies promise 1 of request/request.h;
// clear errors that name the input, what was found and what is allowed.
// Threads: pure functions. Fails with: invalid_argument/<reason>, unsupported_media, not_acceptable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/spans.h"
#include "base/status.h"
#include "base/time.h"
#include "model/spec.h"
#include "request/request.h"

namespace tonnage::codec {

inline constexpr int kMaxJsonDepth = 64;

enum class BodyForm : std::uint8_t { kV2, kJson, kJsonLines, kCsv, kText };  // of a reply

struct ReplyFormat {
  BodyForm form = BodyForm::kV2;
  bool binary_by_default = false;                    // V2: parameters.binary_data_output
  std::vector<request::OutputSelection> selections;  // V2: empty = all outputs
};

struct Decoded {
  request::Request request;  // without completion, envelope, deadline
  std::vector<std::string>
      texts;  // one per row, when the model's `text` input was used; inputs are then empty
  std::optional<Duration> timeout;  // V2 parameter `timeout`
  ReplyFormat format;
};

struct EncodedBody {
  std::string content_type;
  std::optional<std::size_t> json_length;  // V2 binary: Inference-Header-Content-Length
  std::string body;
};

// Checks that ids lie in the spec's range etc.; shared by the decoders and by the text path.
Status check_ranges(const model::ModelSpec& spec, const request::Request& request);

}  // namespace tonnage::codec
