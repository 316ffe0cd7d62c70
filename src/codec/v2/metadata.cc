// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "base/json_text.h"
#include "codec/v2/parameters.h"
#include "codec/v2/v2.h"

namespace tonnage::codec::v2 {
namespace {

void append_tensor(std::string& out, const model::TensorSpec& tensor) {
  out += R"({"name":)";
  append_json_string(out, tensor.name);
  fmt::format_to(std::back_inserter(out), R"(,"datatype":"{}","shape":[{}]}})",
                 tensor::datatype_name(tensor.type), fmt::join(tensor.dims, ","));
}

// What a client must send: the text of a tokenizer model, else everything that is not generated.
void append_inputs(std::string& out, const model::ModelSpec& spec) {
  if (spec.tokenizer) return append_tensor(out, text_input());
  bool is_first = true;
  for (const model::TensorSpec& input : spec.inputs) {
    if (input.source == model::InputSource::kMask) continue;
    if (!is_first) out += ',';
    is_first = false;
    append_tensor(out, input);
  }
}

}  // namespace

std::string server_metadata(std::string_view name, bool model_control) {
  std::string out = R"({"name":)";
  append_json_string(out, name);
  out += R"(,"version":)";
  append_json_string(out, TONNAGE_VERSION);
  out += R"(,"extensions":["binary_tensor_data","classification","parameters","schedule_policy")";
  out += model_control ? R"(,"model_repository"]})" : "]}";
  return out;
}

std::string model_metadata(const model::ModelSpec& spec) {
  std::string out = R"({"name":)";
  append_json_string(out, spec.name);
  out += R"(,"versions":[)";
  append_json_string(out, spec.version);
  out += R"(],"platform":)";
  append_json_string(out, "tonnage_" + spec.route);
  out += R"(,"inputs":[)";
  append_inputs(out, spec);
  out += R"(],"outputs":[)";
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    if (i > 0) out += ',';
    append_tensor(out, spec.outputs[i]);
  }
  out += ']';
  if (!spec.metadata.empty()) {
    out += R"(,"properties":{)";
    bool is_first = true;
    for (const auto& [key, value] : spec.metadata) {
      if (!is_first) out += ',';
      is_first = false;
      append_json_string(out, key);
      out += ':';
      append_json_string(out, value);
    }
    out += '}';
  }
  out += '}';
  return out;
}

}  // namespace tonnage::codec::v2
