// SPDX-License-Identifier: Apache-2.0
// Workload: what is sent. A seed fixes the whole sequence of requests, byte for byte, whatever the
// server does and however fast it is asked.
// Threads: one. Fails with: invalid_argument/bad_workload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "load/mix.h"
#include "load/model_info.h"
#include "load/texts.h"

namespace tonnage::load {

enum class Format : std::uint8_t {
  kV2Json,
  kV2Binary,
  kSageMakerJson,
  kSageMakerText,
  kSageMakerCsv,
  kSageMakerJsonLines
};
enum class Payload : std::uint8_t { kText, kTensors };

struct WorkloadOptions {
  Payload payload = Payload::kTensors;
  Format format = Format::kV2Binary;
  std::optional<Mix> mix;  // nothing: texts as they come; tensors of the mix 80/15/5
  std::uint64_t seed = 1;
  std::uint32_t rows = 1;            // per request
  std::uint32_t vocabulary = 30522;  // integer inputs are uniform below it
  std::uint32_t max_length = 1024;
  Duration deadline{0};  // sent as V2's timeout; 0: the server's own
};

struct Shot {
  LengthClass length_class = LengthClass::kShort;
  std::uint32_t tokens = 0;         // of the longest row
  std::vector<std::uint32_t> rows;  // indices into Texts::all, or lengths of tensor rows
  std::uint64_t seed = 0;           // of the tensor's values
};

class Workload {
 public:
  // Error: bad_workload when model, payload and format do not go together or the mix asks for a
  // class that the texts do not have.
  static Result<Workload> make(WorkloadOptions options, ModelInfo model, Texts texts);

  Shot next();
  // The whole HTTP request. `host` and `prefix` as in Endpoint.
  std::string http_request(const Shot& shot, std::string_view host, std::string_view prefix) const;
  const WorkloadOptions& options() const { return options_; }

 private:
  struct Body {
    std::string bytes;
    std::string_view content_type;
    std::optional<std::size_t> json_length;
  };
  Workload(WorkloadOptions options, ModelInfo model, Texts texts)
      : options_(options), model_(std::move(model)), texts_(std::move(texts)), random_(options.seed) {}

  Body body_of(const Shot& shot) const;
  Body v2_text_json(const Shot& shot) const;
  Body v2_text_binary(const Shot& shot) const;
  Body v2_tensors(const Shot& shot, bool binary) const;
  Body sagemaker_text(const Shot& shot) const;
  std::string closing(bool binary) const;  // outputs and parameters of a V2 request

  WorkloadOptions options_;
  ModelInfo model_;
  Texts texts_;
  Random random_;
};

}  // namespace tonnage::load
